// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives one file from file_client.
 *
 * The client writes the file into this program's memory and reads it back.
 * This program posts no transfers: it lends its memory, and computes the digest
 * of the file at the end.
 *
 * Usage: file_server [-p PORT] [-o FILE] [ADDRESS]
 */
#include "file_transfer.h"

/* Returns a listening id whose connections get queue pairs like @attr. */
static struct rdma_cm_id *listen_on(char *node, char *port)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE }, *info;
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 2, .max_send_sge = 1,
			.max_recv_wr = 2, .max_recv_sge = 1,
			.max_inline_data = sizeof(struct report),
		},
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id;
	int ret;

	hints.ai_port_space = RDMA_PS_TCP;
	ret = rdma_getaddrinfo(node, port, &hints, &info);
	if (ret)
		die("%s port %s: %s", node ?: "any address", port,
		    ret == -1 ? strerror(errno) : gai_strerror(ret));
	if (rdma_create_ep(&id, info, NULL, &attr))
		die("%s port %s: rdma_create_ep: %s%s", node ?: "any address", port,
		    strerror(errno), errno == ENODEV || errno == EADDRNOTAVAIL ?
		    "; no RDMA device has this address" : "");
	rdma_freeaddrinfo(info);
	if (rdma_listen(id, 1))
		die("listening on port %s: %s", port, strerror(errno));
	printf("listening on port %u\n", ntohs(rdma_get_src_port(id)));
	return id;
}

/* The client's offer came with its connection request. */
static size_t offered_size(struct rdma_cm_id *id)
{
	const struct rdma_conn_param *conn = &id->event->param.conn;
	struct offer offer;

	if (conn->private_data_len < sizeof(offer))
		die("the client made no offer");
	memcpy(&offer, conn->private_data, sizeof(offer));
	return be64toh(offer.size);
}

/* Allocates memory for the file, or rejects the client with a reason. */
static uint8_t *allocate_or_reject(struct rdma_cm_id *id, size_t size)
{
	static const char reason[] = "the server has no room for it";
	uint8_t *buf = size ? allocate(size) : NULL;

	if (!buf) {
		rdma_reject(id, reason, sizeof(reason));
		die("no room for the client's %zu bytes; it was told", size);
	}
	return buf;
}

static void accept_with_region(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct region region = {
		.addr = htobe64((uintptr_t)mr->addr),
		.size = htobe64(mr->length),
		.rkey = htobe32(mr->rkey),
	};
	struct rdma_conn_param param = {
		.private_data = &region, .private_data_len = sizeof(region),
		.responder_resources = 16, .rnr_retry_count = 7,
	};

	/* Answer as many reads at a time as the client asked for, if we can. */
	if (id->event->param.conn.responder_resources < param.responder_resources)
		param.responder_resources = id->event->param.conn.responder_resources;
	if (rdma_accept(id, &param))
		die("accepting the client: %s", strerror(errno));
}

/*
 * A disconnect stops the queue pair: messages and acknowledgements that it has
 * not sent yet are lost.  So the client, which expects no more, disconnects
 * first.
 */
static void await_disconnect(struct rdma_cm_id *id)
{
	struct pollfd pfd = { .fd = id->channel->fd, .events = POLLIN };

	if (poll(&pfd, 1, -1) != 1)
		die("waiting for the client's disconnect: %s", strerror(errno));
}

static bool serve(struct rdma_cm_id *id, const char *path)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	size_t size = offered_size(id);
	struct ibv_mr *mr, *report_mr;
	struct report report[2];
	uint8_t *buf;
	bool same;
	int i;

	printf("a client offers %zu bytes\n", size);
	buf = allocate_or_reject(id, size);
	mr = ibv_reg_mr(id->pd, buf, size, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	report_mr = rdma_reg_msgs(id, report, sizeof(report));
	if (!mr || !report_mr)
		die_registering(size);

	/* Post receives before accepting: then the client may send. */
	for (i = 0; i < 2; i++)
		if (rdma_post_recv(id, NULL, &report[i], sizeof(report[i]), report_mr))
			die("rdma_post_recv: %s", strerror(errno));
	accept_with_region(id, mr);

	/* The client sent the report after the writes, so they have arrived. */
	wait_report(id, "the client writes into this memory");
	progress_text("computing the digest");
	SHA256(buf, size, digest);
	progress_end();
	same = check_digest("arrived", digest, report[0].digest);
	if (path)
		save(path, buf, size);
	send_report(id, digest);

	wait_report(id, "the client reads from this memory");
	same &= check_digest("read back", report[1].digest, digest);

	/* Do not wait: the client disconnects once it has this report. */
	post_report(id, digest);
	await_disconnect(id);
	rdma_disconnect(id);
	rdma_dereg_mr(report_mr);
	rdma_dereg_mr(mr);
	munmap(buf, size);
	return same;
}

int main(int argc, char **argv)
{
	char *port = DEFAULT_PORT, *path = NULL;
	struct rdma_cm_id *listener, *id;
	bool same;
	int opt;

	program = argv[0];
	/* Each line at once, into a pipe or a file, too. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "p:o:")) != -1)
		switch (opt) {
		case 'p':
			port = optarg;
			break;
		case 'o':
			path = optarg;
			break;
		default:
			die("usage: [-p PORT] [-o FILE] [ADDRESS]");
		}
	listener = listen_on(argv[optind], port);
	if (rdma_get_request(listener, &id))
		die("waiting for a client: %s", strerror(errno));
	same = serve(id, path);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	return same ? 0 : 1;
}
