// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages from and into memory that is not registered: constants, the stack, the
 * heap. No call registers anything, and nothing has to be copied together.
 *
 * Usage: any_memory          waits for one client
 *        any_memory SERVER   is the client
 */
#include <poll.h>
#include <rdma/rdma_post.h>

#include "common.h"

#define PORT	"7472"
#define TITLE	"a report"
#define BODY	100000

struct header {
	char author[16];
	uint32_t length;
};

/* The flag says what the lkey 0 means for this queue pair. */
static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {
			.max_send_wr = 1, .max_send_sge = 3,
			.max_recv_wr = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = RDMA_POST_QP_ANY_MEMORY,
	};

	check(rdma_create_qp_ex(id, &attr), "rdma_create_qp_ex");
}

/* Memory that is sent must stay as it is until the send completes. */
static void await_send(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	check(rdma_get_send_comp(id, &wc) != 1 || wc.status, "rdma_get_send_comp");
}

static uint32_t await_message(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	check(rdma_get_recv_comp(id, &wc) != 1 || wc.status, "rdma_get_recv_comp");
	return wc.byte_len;
}

/* One message from three places. */
static void send_report(struct rdma_cm_id *id)
{
	struct header header = { .author = "the client", .length = BODY };
	char *body = malloc(BODY);
	struct ibv_sge parts[] = {
		{ (uintptr_t)TITLE, sizeof(TITLE), 0 },
		{ (uintptr_t)&header, sizeof(header), 0 },
		{ (uintptr_t)body, BODY, 0 },
	};

	check(!body, "malloc");
	memset(body, 'x', BODY);
	check(rdma_post_sendv(id, NULL, parts, 3, IBV_SEND_SIGNALED), "rdma_post_sendv");
	await_send(id);
	free(body);
}

static void print_report(const char *report, uint32_t bytes)
{
	struct header header;
	const char *body = report + sizeof(TITLE) + sizeof(header);

	expect(bytes == sizeof(TITLE) + sizeof(header) + BODY, "the length");
	memcpy(&header, report + sizeof(TITLE), sizeof(header));
	expect(body[0] == 'x' && !memcmp(body, body + 1, header.length - 1), "the body");
	printf("%s by %s, %u bytes\n", report, header.author, header.length);
}

int main(int argc, char **argv)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct rdma_cm_id *listener = NULL, *id;
	char *server = argc > 1 ? argv[1] : NULL, *report = malloc(2 * BODY), thanks[32] = "";
	struct rdma_addrinfo *info = address_of(server, PORT);
	struct pollfd pfd = { .events = POLLIN };

	check(rdma_create_ep(&id, info, NULL, NULL), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	if (!server) {
		listener = id;
		check(rdma_listen(listener, 1), "rdma_listen");
		check(rdma_get_request(listener, &id), "rdma_get_request");
	}
	create_qp(id);

	if (server) {
		/* A message cannot go to memory that the program may not write. */
		check(!rdma_post_recv_any(id, NULL, (char *)TITLE, sizeof(TITLE)),
		      "a receive into a constant");
		printf("a receive into a constant: %s\n", strerror(errno));
		check(rdma_post_recv_any(id, NULL, thanks, sizeof(thanks)), "receive");
		check(rdma_connect(id, &param), "rdma_connect");
		send_report(id);
		await_message(id);
		printf("%s\n", thanks);
	} else {
		check(rdma_post_recv_any(id, NULL, report, 2 * BODY), "receive");
		check(rdma_accept(id, &param), "rdma_accept");
		print_report(report, await_message(id));
		/* Without a region, the stock call takes any memory, too. */
		check(rdma_post_send(id, NULL, "thanks", 7, NULL, 0), "rdma_post_send");
		pfd.fd = id->channel->fd;
		check(poll(&pfd, 1, -1) != 1, "poll");
	}

	rdma_disconnect(id);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
	free(report);
	return 0;
}
