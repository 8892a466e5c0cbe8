// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests and answers, the commonest use of messages.  Both ends keep receives
 * posted and post each again when they have taken its message.  The server answers
 * when it has posted the receive: a client learns by the answer that it may send
 * again, and by nothing else.
 *
 * Usage: requests               serves a client
 *        requests SERVER COUNT  sends so many requests, one at a time
 */
#include <time.h>

#include "common.h"

#define PORT "7476"
#define RECEIVES 32
#define GOODBYE UINT64_MAX	/* in place of a number: no answer is wanted */

struct message {
	uint64_t number, square;
};

/* A side has these for receives, and the last one to send. */
static struct message messages[RECEIVES + 1], *out = messages + RECEIVES;
static struct ibv_mr *mr;

static struct ibv_qp_init_attr queues(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = { .max_send_wr = 2, .max_send_sge = 1,
			 .max_recv_wr = RECEIVES, .max_recv_sge = 1 },
	};
}

static void post(struct rdma_cm_id *id, struct message *in)
{
	check(rdma_post_recv(id, in, in, sizeof(*in), mr), "rdma_post_recv");
}

static void prepare(struct rdma_cm_id *id)
{
	int i;

	mr = rdma_reg_msgs(id, messages, sizeof(messages));
	check(!mr, "rdma_reg_msgs");
	for (i = 0; i < RECEIVES; i++)
		post(id, messages + i);
}

/* The next message may be written to @out when the last one has been sent. */
static void send_message(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	check(rdma_post_send(id, NULL, out, sizeof(*out), mr, IBV_SEND_SIGNALED),
	      "rdma_post_send");
	await(id, rdma_get_send_comp, &wc);
}

/* Waits for a message, and posts its receive again. */
static struct message take_message(struct rdma_cm_id *id)
{
	struct message *in, message;
	struct ibv_wc wc;

	await(id, rdma_get_recv_comp, &wc);
	expect(wc.byte_len == sizeof(message), "a message of this size");
	in = (struct message *)(uintptr_t)wc.wr_id;
	message = *in;
	post(id, in);
	return message;
}

static void serve(void)
{
	struct rdma_addrinfo *info = address_of(NULL, PORT);
	struct ibv_qp_init_attr attr = queues();
	struct rdma_cm_id *listener, *id;
	unsigned long answered = 0;

	check(rdma_create_ep(&listener, info, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	check(rdma_listen(listener, 1), "rdma_listen");
	puts("listening");
	fflush(stdout);
	check(rdma_get_request(listener, &id), "rdma_get_request");
	prepare(id);
	check(rdma_accept(id, NULL), "rdma_accept");
	while ((*out = take_message(id)).number != GOODBYE) {
		out->square = out->number * out->number;
		send_message(id);
		answered++;
	}
	printf("%lu requests answered\n", answered);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void ask(const char *server, unsigned long count)
{
	struct ibv_qp_init_attr attr = queues();
	struct rdma_cm_id *id = client_of(server, PORT, &attr);
	struct timespec begin, end;
	struct message answer;
	unsigned long i;
	double seconds;

	prepare(id);
	check(rdma_connect(id, NULL), "rdma_connect");
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 0; i < count; i++) {
		out->number = i;
		send_message(id);
		answer = take_message(id);
		expect(answer.number == i && answer.square == i * i, "its square");
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("%lu requests, %.0f in a second\n", count, count / seconds);
	out->number = GOODBYE;
	send_message(id);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		serve();
	} else if (argc == 3) {
		ask(argv[1], number(argv[2], 0));
	} else {
		fprintf(stderr, "usage: %s [SERVER COUNT]\n", argv[0]);
		return 2;
	}
	return 0;
}
