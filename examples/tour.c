// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A tour of the eight posts: each moves some bytes between two hosts, and the
 * receiving end compares them with a pattern.
 *
 * Usage: tour           the server
 *        tour SERVER    the client, which posts
 *
 * The client sends orders to prepare or check memory; see serve().
 */
#include <endian.h>
#include <poll.h>
#include <stdbool.h>

#include "common.h"

#define PORT "7474"
#define SIZE 8192	/* bytes for data in each end's region */

enum what {
	FILL = 1,	/* fill your region with a pattern, and answer */
	CHECK,		/* look for the pattern in your region, and answer */
	TAKE,		/* post a receive, answer, answer again when it came */
	GIVE,		/* send the pattern; no answer */
	BYE,
};

/* An order or an answer; all fields are big endian. */
struct order {
	uint32_t what;
	uint32_t seed;
	uint32_t length;
	uint32_t ok;
};

/* The registered memory, which the other end may access. */
struct memory {
	uint8_t data[SIZE];
	struct order in;
};

struct region {
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved;
};

static struct rdma_cm_id *id;
static struct memory *mem;
static struct ibv_mr *mr;

static void check_wc(const struct ibv_wc *wc, const char *what)
{
	if (wc->status) {
		fprintf(stderr, "tour: %s: %s\n", what, ibv_wc_status_str(wc->status));
		exit(1);
	}
}

static uint8_t pattern(uint32_t seed, size_t i)
{
	return seed * 31 + i * 7 + (i >> 8);
}

static void fill(uint8_t *p, uint32_t seed, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		p[i] = pattern(seed, i);
}

static bool matches(const uint8_t *p, uint32_t seed, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (p[i] != pattern(seed, i))
			return false;
	return true;
}

static uint32_t await_send(void)
{
	struct ibv_wc wc;

	check(rdma_get_send_comp(id, &wc) != 1, "rdma_get_send_comp");
	check_wc(&wc, "send queue");
	return wc.byte_len;
}

static uint32_t await_recv(void)
{
	struct ibv_wc wc;

	check(rdma_get_recv_comp(id, &wc) != 1, "rdma_get_recv_comp");
	check_wc(&wc, "receive queue");
	return wc.byte_len;
}

static void expect_order(void)
{
	check(rdma_post_recv(id, NULL, &mem->in, sizeof(mem->in), mr),
	      "rdma_post_recv");
}

static void post_order(enum what what, uint32_t seed, uint32_t length, bool ok)
{
	struct order out = {
		htobe32(what), htobe32(seed), htobe32(length), htobe32(ok),
	};

	check(rdma_post_send(id, NULL, &out, sizeof(out), NULL,
			     IBV_SEND_INLINE | IBV_SEND_SIGNALED), "rdma_post_send");
}

static void give_order(enum what what, uint32_t seed, uint32_t length, bool ok)
{
	post_order(what, seed, length, ok);
	await_send();
}

static struct order await_order(void)
{
	struct order order;

	if (await_recv() != sizeof(order)) {
		fprintf(stderr, "tour: not an order\n");
		exit(1);
	}
	order.what = be32toh(mem->in.what);
	order.seed = be32toh(mem->in.seed);
	order.length = be32toh(mem->in.length);
	order.ok = be32toh(mem->in.ok);
	if (order.length > SIZE) {
		fprintf(stderr, "tour: an order for %u bytes\n", order.length);
		exit(1);
	}
	return order;
}

/*
 * A disconnect stops the queue pair: messages and acknowledgements that it has
 * not sent yet are lost.  So the end that sends the last message waits for the
 * other end's disconnect, which means that the message has arrived.
 */
static void await_disconnect(void)
{
	struct pollfd pfd = { .fd = id->channel->fd, .events = POLLIN };

	check(poll(&pfd, 1, -1) != 1, "poll");
}

/*
 * Carries out the client's orders.  Messages use receives in the order of their
 * posts, so the receive for data is posted before that for the next order.
 */
static void serve(void)
{
	struct order order;
	bool ok;

	while (true) {
		order = await_order();
		ok = true;
		switch (order.what) {
		case FILL:
			fill(mem->data, order.seed, order.length);
			break;
		case CHECK:
			ok = matches(mem->data, order.seed, order.length);
			break;
		case TAKE:
			memset(mem->data, 0, SIZE);
			check(rdma_post_recv(id, NULL, mem->data, SIZE, mr),
			      "rdma_post_recv");
			give_order(TAKE, 0, 0, true);
			ok = await_recv() == order.length &&
			     matches(mem->data, order.seed, order.length);
			break;
		case GIVE:
			expect_order();
			fill(mem->data, order.seed, order.length);
			check(rdma_post_send(id, NULL, mem->data, order.length,
					     mr, IBV_SEND_SIGNALED),
			      "rdma_post_send");
			await_send();
			continue;
		}
		if (order.what == BYE)
			break;
		expect_order();
		give_order(order.what, order.seed, order.length, ok);
	}
	post_order(BYE, 0, 0, true);
	await_disconnect();
}

static bool order(enum what what, uint32_t seed, uint32_t length)
{
	expect_order();
	give_order(what, seed, length, false);
	return await_order().ok;
}

/* Returns three pieces of the local region with @length bytes in total. */
static struct ibv_sge *pieces(uint32_t length)
{
	static struct ibv_sge list[3];
	uint32_t first = length / 2, second = length / 3;

	list[0] = (struct ibv_sge) { (uintptr_t)mem->data + 4096, first, mr->lkey };
	list[1] = (struct ibv_sge) { (uintptr_t)mem->data, second, mr->lkey };
	list[2] = (struct ibv_sge) {
		(uintptr_t)mem->data + 2048, length - first - second, mr->lkey,
	};
	return list;
}

/* These copy between one buffer and the pieces, which are not in order. */
static void scatter(const uint8_t *from, struct ibv_sge *list)
{
	int i;

	for (i = 0; i < 3; from += list[i++].length)
		memcpy((void *)(uintptr_t)list[i].addr, from, list[i].length);
}

static void gather(uint8_t *to, struct ibv_sge *list)
{
	int i;

	for (i = 0; i < 3; to += list[i++].length)
		memcpy(to, (void *)(uintptr_t)list[i].addr, list[i].length);
}

static bool all_ok = true;

static void report(const char *post, int entries, uint32_t bytes, const char *where,
		   bool ok)
{
	printf("%-16s %d %-8s %4u bytes -> %s\n", post, entries,
	       entries == 1 ? "buffer," : "entries,", bytes,
	       ok ? where : "WRONG DATA");
	all_ok &= ok;
}

#define HERE "ok, verified here"
#define PEER "ok, verified at the peer"

static void tour_messages(void)
{
	uint8_t whole[SIZE];
	struct ibv_sge *list;
	bool ok;

	order(TAKE, 1, 1000);
	fill(mem->data, 1, 1000);
	expect_order();
	check(rdma_post_send(id, NULL, mem->data, 1000, mr, IBV_SEND_SIGNALED),
	      "rdma_post_send");
	await_send();
	report("rdma_post_send", 1, 1000, PEER, await_order().ok);

	order(TAKE, 2, 3000);
	fill(whole, 2, 3000);
	list = pieces(3000);
	scatter(whole, list);
	expect_order();
	check(rdma_post_sendv(id, NULL, list, 3, IBV_SEND_SIGNALED),
	      "rdma_post_sendv");
	await_send();
	report("rdma_post_sendv", 3, 3000, PEER, await_order().ok);

	memset(mem->data, 0, SIZE);
	check(rdma_post_recv(id, NULL, mem->data, SIZE, mr), "rdma_post_recv");
	give_order(GIVE, 3, 1000, false);
	ok = await_recv() == 1000;
	report("rdma_post_recv", 1, 1000, HERE, ok && matches(mem->data, 3, 1000));

	memset(mem->data, 0, SIZE);
	list = pieces(3000);
	check(rdma_post_recvv(id, NULL, list, 3), "rdma_post_recvv");
	give_order(GIVE, 4, 3000, false);
	ok = await_recv() == 3000;
	gather(whole, list);
	report("rdma_post_recvv", 3, 3000, HERE, ok && matches(whole, 4, 3000));
}

static void tour_rdma(const struct region *peer)
{
	uint8_t whole[SIZE];
	struct ibv_sge *list;

	fill(mem->data, 5, 4096);
	check(rdma_post_write(id, NULL, mem->data, 4096, mr, IBV_SEND_SIGNALED,
			      peer->addr, peer->rkey), "rdma_post_write");
	await_send();
	report("rdma_post_write", 1, 4096, PEER, order(CHECK, 5, 4096));

	fill(whole, 6, 4096);
	list = pieces(4096);
	scatter(whole, list);
	check(rdma_post_writev(id, NULL, list, 3, IBV_SEND_SIGNALED, peer->addr,
			       peer->rkey), "rdma_post_writev");
	await_send();
	report("rdma_post_writev", 3, 4096, PEER, order(CHECK, 6, 4096));

	order(FILL, 7, 4096);
	memset(mem->data, 0, SIZE);
	check(rdma_post_read(id, NULL, mem->data, 4096, mr, IBV_SEND_SIGNALED,
			     peer->addr, peer->rkey), "rdma_post_read");
	await_send();
	report("rdma_post_read", 1, 4096, HERE, matches(mem->data, 7, 4096));

	order(FILL, 8, 4096);
	memset(mem->data, 0, SIZE);
	list = pieces(4096);
	check(rdma_post_readv(id, NULL, list, 3, IBV_SEND_SIGNALED, peer->addr,
			      peer->rkey), "rdma_post_readv");
	await_send();
	gather(whole, list);
	report("rdma_post_readv", 3, 4096, HERE, matches(whole, 8, 4096));
}

/* Makes an endpoint whose queue pair takes lists of three entries. */
static struct rdma_cm_id *create_endpoint(char *server)
{
	struct rdma_addrinfo *info = address_of(server, PORT);
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_send_sge = 3,
			.max_recv_wr = 2, .max_recv_sge = 3,
			.max_inline_data = sizeof(struct order),
		},
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *ep;

	check(rdma_create_ep(&ep, info, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	return ep;
}

static void prepare_memory(void)
{
	mem = calloc(1, sizeof(*mem));
	check(!mem, "calloc");
	mr = ibv_reg_mr(id->pd, mem, sizeof(*mem), IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	check(!mr, "ibv_reg_mr");
}

int main(int argc, char **argv)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7,
	};
	struct rdma_cm_id *listener = NULL;
	char *server = argv[1];
	struct region region;

	if (argc > 2 || (server && *server == '-')) {
		fprintf(stderr, "usage: tour [SERVER]\n");
		return 2;
	}
	id = create_endpoint(server);
	if (server) {
		prepare_memory();
		check(rdma_connect(id, &param), "rdma_connect");
		/* The server's answer has its region. */
		if (id->event->param.conn.private_data_len < sizeof(region)) {
			fprintf(stderr, "tour: the other end has no region\n");
			return 1;
		}
		memcpy(&region, id->event->param.conn.private_data, sizeof(region));
		region.addr = be64toh(region.addr);
		region.rkey = be32toh(region.rkey);
		tour_messages();
		tour_rdma(&region);
		order(BYE, 0, 0);
		printf("%s\n", all_ok ? "all eight are right" : "FAILED");
	} else {
		listener = id;
		check(rdma_listen(listener, 1), "rdma_listen");
		puts("listening");
		fflush(stdout);
		check(rdma_get_request(listener, &id), "rdma_get_request");
		prepare_memory();
		expect_order();
		region.addr = htobe64((uintptr_t)mem->data);
		region.rkey = htobe32(mr->rkey);
		region.reserved = 0;
		param.private_data = &region;
		param.private_data_len = sizeof(region);
		check(rdma_accept(id, &param), "rdma_accept");
		serve();
	}
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	free(mem);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
	return all_ok ? 0 : 1;
}
