// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One message each way: the smallest complete program.
 *
 * Usage: hello          waits for one client
 *        hello SERVER   is the client
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "7472"

static void check(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "hello: %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

/*
 * Sends a line.  Inline data needs no registration.  The program does not wait
 * for the completion, since a line or a disconnect answers each line.
 */
static void say(struct rdma_cm_id *id, char *text)
{
	check(rdma_post_send(id, NULL, text, strlen(text) + 1, NULL,
			     IBV_SEND_INLINE), "rdma_post_send");
}

/* Waits for a line, which arrives in the posted buffer. */
static void hear(struct rdma_cm_id *id, char *buf)
{
	struct ibv_wc wc;

	check(rdma_get_recv_comp(id, &wc) != 1, "rdma_get_recv_comp");
	if (wc.status)
		printf("not received: %s\n", ibv_wc_status_str(wc.status));
	else
		printf("%.*s\n", wc.byte_len, buf);
}

/*
 * The side that sends the last message must not disconnect first: that would
 * stop the queue pair, perhaps before the message has left.
 */
static void await_disconnect(struct rdma_cm_id *id)
{
	struct pollfd pfd = { .fd = id->channel->fd, .events = POLLIN };

	check(poll(&pfd, 1, -1) != 1, "poll");
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_send_sge = 1,
			.max_recv_wr = 1, .max_recv_sge = 1,
			.max_inline_data = 32,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct rdma_cm_id *listener = NULL, *id;
	char *server = argv[1], buf[32] = "";
	struct ibv_mr *mr;
	int error;

	if (argc < 2)
		hints.ai_flags = RAI_PASSIVE;
	/* Fails with errno as other functions do, or as getaddrinfo(3). */
	error = rdma_getaddrinfo(server, PORT, &hints, &info);
	check(error == -1, "rdma_getaddrinfo");
	if (error) {
		fprintf(stderr, "hello: %s: %s\n", server, gai_strerror(error));
		return 1;
	}
	check(rdma_create_ep(&id, info, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	if (!server) {
		listener = id;
		check(rdma_listen(listener, 1), "rdma_listen");
		check(rdma_get_request(listener, &id), "rdma_get_request");
	}

	/* Post the receive before the other side can send. */
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	check(!mr, "rdma_reg_msgs");
	check(rdma_post_recv(id, NULL, buf, sizeof(buf), mr), "rdma_post_recv");
	if (server) {
		check(rdma_connect(id, &param), "rdma_connect");
		say(id, "hello, server");
		hear(id, buf);
	} else {
		check(rdma_accept(id, &param), "rdma_accept");
		hear(id, buf);
		say(id, "hello, client");
		await_disconnect(id);
	}

	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
	return 0;
}
