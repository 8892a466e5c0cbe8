// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client of event_server and of srq_server: sends lines, several ahead of
 * the answers, and compares each answer with what it must be.
 *
 * Usage: lines_client SERVER [LINES]    100 lines by default
 */
#include "lines.h"

static char in[AHEAD][LINE];

static void say(struct rdma_cm_id *id, int number)
{
	char line[LINE] = {};
	struct ibv_wc wc;

	snprintf(line, sizeof(line), "line %d", number);
	/* A line that has been answered has completed, or will soon. */
	if (number >= AHEAD)
		await(id, rdma_get_send_comp, &wc);
	check(rdma_post_send(id, NULL, line, LINE, NULL, IBV_SEND_INLINE),
	      "rdma_post_send");
}

/* Answers come in the order of the lines. */
static void hear(struct rdma_cm_id *id, int number)
{
	char line[LINE] = {}, right[LINE];
	struct ibv_wc wc;

	await(id, rdma_get_recv_comp, &wc);
	snprintf(line, sizeof(line), "line %d", number);
	capitals(right, line);
	expect(wc.byte_len == LINE && !memcmp((char *)wc.wr_id, right, LINE), line);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = lines_attr();
	int lines, said = 0, heard;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	if (argc < 2) {
		fprintf(stderr, "usage: lines_client SERVER [LINES]\n");
		return 2;
	}
	lines = number(argv[2], 100);
	id = client_of(argv[1], PORT, &attr);
	mr = rdma_reg_msgs(id, in, sizeof(in));
	check(!mr, "rdma_reg_msgs");
	for (heard = 0; heard < AHEAD; heard++)
		check(rdma_post_recv(id, in[heard], in[heard], LINE, mr),
		      "rdma_post_recv");
	check(rdma_connect(id, &lines_param), "rdma_connect");

	for (heard = 0; heard < lines; heard++) {
		while (said < lines && said < heard + AHEAD)
			say(id, said++);
		hear(id, heard);
		check(rdma_post_recv(id, in[heard % AHEAD], in[heard % AHEAD], LINE,
				     mr), "rdma_post_recv");
	}
	printf("%d lines answered\n", heard);

	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return 0;
}
