// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes a file into file_server's memory, in chunks of which several are in
 * flight at a time, and reads it back from there.
 *
 * Usage: file_client [-p PORT] [-c CHUNK] [-d DEPTH] [-o FILE] SERVER FILE
 *
 *   -c CHUNK  bytes for each work request, 65536 by default
 *   -d DEPTH  work requests in flight, 16 by default
 *   -o FILE   where to save the copy that was read back
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "file_transfer.h"

static size_t chunk = 65536;
static unsigned long depth = 16;

static uint8_t *load(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	double start = now();
	size_t done = 0, max;
	struct stat st;
	uint8_t *buf;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		die("reading %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || !st.st_size)
		die("%s: no regular file, or empty", path);
	*size = st.st_size;
	buf = allocate(*size);
	if (!buf)
		die("%s: no memory for %zu bytes", path, *size);
	while (done < *size) {
		max = *size - done < 1 << 24 ? *size - done : 1 << 24;
		n = read(fd, buf + done, max);
		if (n <= 0)
			die("reading %s: %s", path, n ? strerror(errno) : "it shrinks");
		done += n;
		progress("reading", done, *size, start);
	}
	progress_end();
	close(fd);
	return buf;
}

static struct rdma_cm_id *create_endpoint(char *node, char *port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = depth, .max_send_sge = 1,
			.max_recv_wr = 2, .max_recv_sge = 1,
			.max_inline_data = sizeof(struct report),
		},
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id;
	int ret;

	ret = rdma_getaddrinfo(node, port, &hints, &info);
	if (ret)
		die("%s port %s: %s", node, port,
		    ret == -1 ? strerror(errno) : gai_strerror(ret));
	if (rdma_create_ep(&id, info, NULL, &attr))
		die("%s: rdma_create_ep: %s%s", node, strerror(errno),
		    errno == ENODEV ? "; no RDMA device leads there" : "");
	rdma_freeaddrinfo(info);
	return id;
}

/* Connects with an offer; the answer brings the server's region. */
static struct region connect_for_region(struct rdma_cm_id *id, size_t size)
{
	struct offer offer = { .size = htobe64(size) };
	struct rdma_conn_param param = {
		.private_data = &offer, .private_data_len = sizeof(offer),
		.initiator_depth = depth < 16 ? depth : 16,
		.retry_count = 7, .rnr_retry_count = 7,
	};
	const struct rdma_conn_param *answer;
	struct region region;

	if (rdma_connect(id, &param))
		die("the server does not accept: %s%s", strerror(errno),
		    errno == ECONNREFUSED ? "; does file_server run there?" : "");
	answer = &id->event->param.conn;
	if (answer->private_data_len < sizeof(region))
		die("the server lends no memory");
	memcpy(&region, answer->private_data, sizeof(region));
	region.addr = be64toh(region.addr);
	region.size = be64toh(region.size);
	region.rkey = be32toh(region.rkey);
	if (region.size < size)
		die("the server lends only %zu bytes", (size_t)region.size);
	return region;
}

/*
 * Moves the whole buffer to or from the server.  As soon as a work request has
 * completed, the next one is posted.  The wr_id is the number of the chunk.
 */
static void transfer(struct rdma_cm_id *id, bool to_server, uint8_t *buf,
		     size_t size, struct ibv_mr *mr, const struct region *region)
{
	size_t total = (size + chunk - 1) / chunk, posted = 0, completed = 0;
	double start = now(), seconds;
	size_t offset, length;
	struct ibv_wc wc;
	int ret;

	while (completed < total) {
		if (posted < total && posted - completed < depth) {
			offset = posted * chunk;
			length = size - offset < chunk ? size - offset : chunk;
			if (to_server)
				ret = rdma_post_write(id, (void *)posted, buf + offset,
						      length, mr, IBV_SEND_SIGNALED,
						      region->addr + offset,
						      region->rkey);
			else
				ret = rdma_post_read(id, (void *)posted, buf + offset,
						     length, mr, IBV_SEND_SIGNALED,
						     region->addr + offset,
						     region->rkey);
			if (ret)
				die("posting chunk %zu: %s", posted, strerror(errno));
			posted++;
			continue;
		}
		if (rdma_get_send_comp(id, &wc) != 1)
			die("chunk %zu: rdma_get_send_comp: %s", completed,
			    strerror(errno));
		if (wc.status)
			die("chunk %zu: %s", (size_t)wc.wr_id,
			    ibv_wc_status_str(wc.status));
		if (wc.wr_id != completed)
			die("chunk %zu completed before chunk %zu",
			    (size_t)wc.wr_id, completed);
		completed++;
		progress(to_server ? "writing" : "reading back",
			 completed < total ? completed * chunk : size, size, start);
	}
	progress_end();
	seconds = now() - start;
	printf("%-11s %zu bytes in %.3f s, %.1f MB/s; %zu completions, at most %lu in flight\n",
	       to_server ? "written" : "read back", size, seconds,
	       size / seconds / 1e6, completed, depth);
}

static bool run(struct rdma_cm_id *id, uint8_t *data, size_t size, const char *path)
{
	uint8_t digest[SHA256_DIGEST_LENGTH], again[SHA256_DIGEST_LENGTH];
	char text[2 * SHA256_DIGEST_LENGTH + 1];
	struct ibv_mr *data_mr, *copy_mr, *report_mr;
	uint8_t *copy = allocate(size);
	struct report report[2];
	struct region region;
	bool same;
	int i;

	if (!copy)
		die("no memory for %zu bytes more", size);
	/* The server does not access these buffers, so it needs no rights. */
	data_mr = rdma_reg_msgs(id, data, size);
	copy_mr = rdma_reg_msgs(id, copy, size);
	report_mr = rdma_reg_msgs(id, report, sizeof(report));
	if (!data_mr || !copy_mr || !report_mr)
		die_registering(size);
	for (i = 0; i < 2; i++)
		if (rdma_post_recv(id, NULL, &report[i], sizeof(report[i]), report_mr))
			die("rdma_post_recv: %s", strerror(errno));
	region = connect_for_region(id, size);

	transfer(id, true, data, size, data_mr, &region);
	progress_text("computing the digest");
	SHA256(data, size, digest);
	progress_end();
	printf("%-11s sha256 %s\n", "sent", hex(digest, text));
	send_report(id, digest);
	wait_report(id, "waiting for the server's digest");
	same = check_digest("arrived", report[0].digest, digest);

	transfer(id, false, copy, size, copy_mr, &region);
	progress_text("computing the digest");
	SHA256(copy, size, again);
	progress_end();
	same &= check_digest("read back", again, digest);
	send_report(id, again);
	wait_report(id, "waiting for the server's last report");
	if (path)
		save(path, copy, size);

	rdma_disconnect(id);
	rdma_dereg_mr(report_mr);
	rdma_dereg_mr(copy_mr);
	rdma_dereg_mr(data_mr);
	munmap(copy, size);
	return same;
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || !n || n > max)
		die("%s: not a number from 1 to %lu", text, max);
	return n;
}

int main(int argc, char **argv)
{
	char *port = DEFAULT_PORT, *path = NULL;
	struct rdma_cm_id *id;
	uint8_t *data;
	size_t size;
	bool same;
	int opt;

	program = argv[0];
	while ((opt = getopt(argc, argv, "p:c:d:o:")) != -1)
		switch (opt) {
		case 'p':
			port = optarg;
			break;
		case 'c':
			chunk = number(optarg, 1ul << 30);
			break;
		case 'd':
			depth = number(optarg, 1024);
			break;
		case 'o':
			path = optarg;
			break;
		default:
			optind = argc;
		}
	if (argc - optind != 2)
		die("usage: [-p PORT] [-c CHUNK] [-d DEPTH] [-o FILE] SERVER FILE");
	data = load(argv[optind + 1], &size);
	printf("file        %s, %zu bytes\n", argv[optind + 1], size);
	id = create_endpoint(argv[optind], port);
	same = run(id, data, size, path);
	rdma_destroy_ep(id);
	munmap(data, size);
	return same ? 0 : 1;
}
