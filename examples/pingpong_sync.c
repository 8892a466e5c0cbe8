// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages back and forth with synchronous ids: there are no events and no
 * channels, and each call returns when it is done.  The program was written
 * from the manual pages alone; its output is the same over librdma_post and
 * over the system's librdmacm.
 *
 * Usage: pingpong_sync [-n COUNT] [-s SIZE]          the server
 *        pingpong_sync [-n COUNT] [-s SIZE] SERVER   the client
 *
 * Both sides need the same numbers.  SIZE is at most 1048576.
 */
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "common.h"

#define PORT "7473"

static unsigned int count = 100, size = 1024;

/* Fills in message number n, or the answer to it, which differs. */
static void fill(uint8_t *buf, unsigned int n, bool answer)
{
	unsigned int i;

	for (i = 0; i < size; i++)
		buf[i] = n * 7 + i * 13 + answer;
}

static void post_recv(struct rdma_cm_id *id, uint8_t *buf, struct ibv_mr *mr)
{
	check(rdma_post_recv(id, buf, buf, size, mr), "rdma_post_recv");
}

/* Waits for message n and returns whether every byte is right. */
static bool receive(struct rdma_cm_id *id, uint8_t *buf, unsigned int n, bool answer)
{
	uint8_t expected[size];
	struct ibv_wc wc;

	check(rdma_get_recv_comp(id, &wc) != 1, "rdma_get_recv_comp");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "pingpong_sync: message %u: %s\n", n,
			ibv_wc_status_str(wc.status));
		exit(1);
	}
	fill(expected, n, answer);
	return wc.wr_id == (uintptr_t)buf && wc.byte_len == size &&
	       !memcmp(buf, expected, size);
}

static void post_message(struct rdma_cm_id *id, uint8_t *buf, struct ibv_mr *mr,
			 unsigned int n, bool answer)
{
	fill(buf, n, answer);
	check(rdma_post_send(id, buf, buf, size, mr, IBV_SEND_SIGNALED), "rdma_post_send");
}

static void await_sent(struct rdma_cm_id *id, unsigned int n)
{
	struct ibv_wc wc;

	check(rdma_get_send_comp(id, &wc) != 1, "rdma_get_send_comp");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "pingpong_sync: message %u: %s\n", n,
			ibv_wc_status_str(wc.status));
		exit(1);
	}
}

/*
 * A disconnect stops the queue pair: messages and acknowledgements that it has
 * not sent yet are lost.  So the side that sends the last message waits for the
 * other side's disconnect, which means that the message has arrived.
 */
static void await_disconnect(struct rdma_cm_id *id)
{
	struct pollfd pfd = { .fd = id->channel->fd, .events = POLLIN };

	check(poll(&pfd, 1, -1) != 1, "poll");
}

/*
 * Uses one buffer to send and one to receive.  Posts the next receive before the
 * message that makes the other side send.
 */
static unsigned int play(struct rdma_cm_id *id, uint8_t *buf, struct ibv_mr *mr,
			 bool client)
{
	uint8_t *in = buf, *out = buf + size;
	unsigned int n, right = 0;

	for (n = 0; n < count; n++) {
		if (client) {
			post_message(id, out, mr, n, false);
			await_sent(id, n);
		}
		right += receive(id, in, n, client);
		if (n + 1 < count)
			post_recv(id, in, mr);
		if (!client) {
			post_message(id, out, mr, n, true);
			if (n + 1 < count)
				await_sent(id, n);
		}
	}
	if (!client)
		await_disconnect(id);
	return right;
}

static struct rdma_cm_id *create(char *server)
{
	struct rdma_addrinfo *info = address_of(server, PORT);
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id;

	memset(&attr, 0, sizeof(attr));
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	check(rdma_create_ep(&id, info, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

static void usage(void)
{
	fprintf(stderr, "usage: pingpong_sync [-n COUNT] [-s SIZE] [SERVER]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener = NULL, *id;
	struct rdma_conn_param param;
	struct ibv_mr *mr;
	unsigned int right;
	uint8_t *buf;
	char *server;
	int opt;

	while ((opt = getopt(argc, argv, "n:s:")) != -1) {
		if (opt == 'n')
			count = number(optarg, 0);
		else if (opt == 's')
			size = number(optarg, 0);
		else
			usage();
	}
	if (argc > optind + 1 || !size || size > 1 << 20)
		usage();
	server = argv[optind];
	id = create(server);
	if (!server) {
		listener = id;
		check(rdma_listen(listener, 1), "rdma_listen");
		check(rdma_get_request(listener, &id), "rdma_get_request");
	}

	buf = calloc(2, size);
	check(!buf, "calloc");
	mr = rdma_reg_msgs(id, buf, 2 * size);
	check(!mr, "rdma_reg_msgs");
	post_recv(id, buf, mr);

	memset(&param, 0, sizeof(param));
	param.retry_count = 7;
	param.rnr_retry_count = 7;
	check(server ? rdma_connect(id, &param) : rdma_accept(id, &param),
	      server ? "rdma_connect" : "rdma_accept");
	right = play(id, buf, mr, server);
	printf("%s: %u of %u messages of %u bytes are right\n",
	       server ? "client" : "server", right, count, size);

	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	free(buf);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
	return right == count ? 0 : 1;
}
