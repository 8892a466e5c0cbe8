// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sends traffic that verifies itself over networks that lose packets.  A
 * failure means that a message is lost, repeated or wrong, or that a broken
 * connection is not reported.
 *
 * Usage: wire serve ADDRESS            until it is killed
 *        wire send ADDRESS MESSAGES [no-reads]    all must arrive
 *        wire break ADDRESS SECONDS    until it fails, which must happen, and
 *                                      the disconnection is reported
 *        wire fail ADDRESS SECONDS     the same without the disconnection
 *        wire connect ADDRESS SECONDS  may take that long
 *        wire each ADDRESS ROUNDS      of two writes of one call, the first
 *                                      must complete while the other is
 *                                      under way
 *
 * For each message, the client writes into a slot of the server's memory, and
 * then sends its number and checksum; it reads every fourth message back.  When
 * the send arrives, the server verifies the message: messages come in order,
 * whole and once.  The server counts verified messages in its memory, where the
 * client reads them; its answer to a connection has the count of the connection
 * before.  The client keeps in the file "acked" how many messages succeeded:
 * the server must have verified all of them.
 */
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

void die(const char *what)
{
	fprintf(stderr, "# %s: %s\n", what, strerror(errno));
	exit(1);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

uint64_t checksum(const struct slot *slot)
{
	uint64_t sum = 0xcbf29ce484222325 ^ slot->number;
	size_t i;

	for (i = 0; i < sizeof(slot->data); i++)
		sum = (sum ^ slot->data[i]) * 0x100000001b3;
	return sum;
}

static void fill(struct slot *slot, uint64_t number)
{
	uint64_t x = number * 0x9e3779b97f4a7c15 + 1;
	size_t i;

	slot->number = number;
	for (i = 0; i < sizeof(slot->data); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		slot->data[i] = x;
	}
}

struct rdma_cm_event *next_event(struct rdma_event_channel *channel, int ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, ms) != 1)
		return NULL;
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	return event;
}

void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 4 * WINDOW,
			.max_recv_wr = SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
}

struct client {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct memory *mem, *back;
	struct ibv_mr *mr, *back_mr;
	struct hello server;
	uint64_t posted, acked, read_back;
	bool no_reads;
	enum ibv_wc_status status;	/* the first that is not success */
	double last;			/* time of the last success */
	double longest;			/* between two, in seconds */
};

/* Expect @want as the next event.  Returns 0 or a negative errno. */
static int expect(struct client *c, enum rdma_cm_event_type want, double until)
{
	struct rdma_cm_event *event;
	int ret = 0;

	do {
		event = next_event(c->channel, 100);
	} while (!event && now() < until);
	if (!event) {
		printf("# no event, but wanted %s\n", rdma_event_str(want));
		return -ETIMEDOUT;
	}
	if (event->event != want) {
		printf("# %s, status %d\n", rdma_event_str(event->event),
		       event->status);
		ret = -ECONNREFUSED;
	} else if (want == RDMA_CM_EVENT_ESTABLISHED) {
		memcpy(&c->server, event->param.conn.private_data,
		       sizeof(c->server));
	}
	rdma_ack_cm_event(event);
	return ret;
}

static int try_connect(struct client *c, struct sockaddr_in *addr, double until)
{
	struct rdma_conn_param param = {
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 5,	/* with 7, rxe retries for ever */
		.rnr_retry_count = 7,
	};

	c->channel = rdma_create_event_channel();
	if (!c->channel || rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_resolve_addr(c->id, NULL, (struct sockaddr *)addr, 5000) ||
	    expect(c, RDMA_CM_EVENT_ADDR_RESOLVED, until) ||
	    rdma_resolve_route(c->id, 5000) ||
	    expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED, until))
		return -1;
	create_qp(c->id);
	return rdma_connect(c->id, &param) ||
	       expect(c, RDMA_CM_EVENT_ESTABLISHED, until);
}

static void give_up(struct client *c)
{
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->channel);
}

static void connect_to(struct client *c, struct sockaddr_in *addr,
		       double seconds)
{
	double began = now();

	while (try_connect(c, addr, began + seconds)) {
		give_up(c);
		if (now() > began + seconds) {
			printf("# not connected after %.1f s\n", now() - began);
			exit(1);
		}
		usleep(200000);
	}
	printf("# connected after %.1f s\n", now() - began);
	c->mem = calloc(1, sizeof(*c->mem));
	c->back = calloc(1, sizeof(*c->back));
	c->mr = ibv_reg_mr(c->id->pd, c->mem, sizeof(*c->mem),
			   IBV_ACCESS_LOCAL_WRITE);
	c->back_mr = ibv_reg_mr(c->id->pd, c->back, sizeof(*c->back),
				IBV_ACCESS_LOCAL_WRITE);
	if (!c->mr || !c->back_mr)
		die("ibv_reg_mr");
	c->last = now();
}

/* The server has verified all messages that the last client saw succeed. */
static int check_last(const struct client *c)
{
	unsigned long long acked = 0, posted = 0;
	FILE *f = fopen("acked", "r");
	int ret = 0;

	if (c->server.wrong) {
		printf("# %u messages were wrong\n", c->server.wrong);
		ret = 1;
	}
	if (!f)
		return ret;
	if (fscanf(f, "%llu %llu", &acked, &posted) != 2)
		ret = 1;
	fclose(f);
	unlink("acked");
	printf("# the connection before: %llu messages with success, %llu verified, %llu posted\n",
	       acked, (unsigned long long)c->server.before, posted);
	return ret || c->server.before < acked || c->server.before > posted;
}

static void keep_acked(const struct client *c)
{
	FILE *f = fopen("acked", "w");

	if (!f || fprintf(f, "%llu %llu\n", (unsigned long long)c->acked,
			  (unsigned long long)c->posted) < 0 || fclose(f))
		die("acked");
}

enum { IS_SEND = 1, IS_READ, IS_WRITE, IS_COUNT };

static void *context(uint64_t number, unsigned int what)
{
	return (void *)(uintptr_t)(number << 2 | (what & 3));
}

static int post_message(struct client *c)
{
	uint64_t n = c->posted, at = c->server.addr;
	struct slot *slot = &c->mem->slots[n % SLOTS];
	struct notice *notice = &c->mem->notices[n % SLOTS];

	fill(slot, n);
	*notice = (struct notice) { n, checksum(slot) };
	at += (char *)slot - (char *)c->mem;
	if (rdma_post_write(c->id, context(n, IS_WRITE), slot, sizeof(*slot),
			    c->mr, 0, at, c->server.rkey) ||
	    rdma_post_send(c->id, context(n, IS_SEND), notice, sizeof(*notice),
			   c->mr, IBV_SEND_SIGNALED))
		return -1;
	if (n % 4 == 0 && !c->no_reads &&
	    rdma_post_read(c->id, context(n, IS_READ),
			   &c->back->slots[n % SLOTS], sizeof(*slot), c->back_mr,
			   IBV_SEND_SIGNALED, at, c->server.rkey))
		return -1;
	c->posted++;
	return 0;
}

static void completion(struct client *c, const struct ibv_wc *wc)
{
	uint64_t n = wc->wr_id >> 2;
	struct slot *slot = &c->back->slots[n % SLOTS];
	double at;

	if (wc->status != IBV_WC_SUCCESS) {
		if (c->status == IBV_WC_SUCCESS) {
			c->status = wc->status;
			printf("# message %llu: %s, %.1f s after the last success\n",
			       (unsigned long long)n,
			       ibv_wc_status_str(wc->status), now() - c->last);
		}
		return;
	}
	at = now();
	if (at - c->last > c->longest)
		c->longest = at - c->last;
	c->last = at;
	switch (wc->wr_id & 3) {
	case IS_SEND:
		if (n != c->acked)
			die("a completion out of order");
		c->acked++;
		break;
	case IS_READ:
		if (slot->number != n ||
		    memcmp(slot, &c->mem->slots[n % SLOTS], sizeof(*slot)))
			die("read back something else");
		c->read_back++;
		break;
	}
}

static void tell_longest(const struct client *c)
{
	printf("# longest between two successes: %.1f s\n", c->longest);
}

static void poll_sends(struct client *c)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(c->id->send_cq, 1, &wc) == 1) {
		completion(c, &wc);
		n++;
	}
	if (!n)
		usleep(200);
}

/* Read the number of messages that the server has verified. */
static uint64_t verified(struct client *c)
{
	uint64_t at = c->server.addr + offsetof(struct memory, verified);
	struct ibv_wc wc;

	if (rdma_post_read(c->id, context(0, IS_COUNT), &c->back->verified, 8,
			   c->back_mr, IBV_SEND_SIGNALED, at, c->server.rkey))
		die("post");
	while (!ibv_poll_cq(c->id->send_cq, 1, &wc))
		usleep(200);
	if (wc.status != IBV_WC_SUCCESS) {
		printf("# the last read: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
	return c->back->verified;
}

static int send_all(struct client *c, uint64_t messages)
{
	uint64_t seen, reads = c->no_reads ? 0 : (messages + 3) / 4;
	double began = now();

	while (c->acked < messages && c->status == IBV_WC_SUCCESS) {
		while (c->posted < messages && c->posted < c->acked + WINDOW) {
			if (post_message(c))
				die("post");
		}
		poll_sends(c);
		if (now() > began + LIMIT_S) {
			printf("# not done after %d s\n", LIMIT_S);
			break;
		}
	}
	keep_acked(c);
	while (c->read_back < reads &&
	       c->status == IBV_WC_SUCCESS && now() < c->last + LIMIT_S)
		poll_sends(c);
	printf("# %llu of %llu messages in %.1f s, %llu read back\n",
	       (unsigned long long)c->acked, (unsigned long long)messages,
	       now() - began, (unsigned long long)c->read_back);
	tell_longest(c);
	if (c->acked != messages || c->status != IBV_WC_SUCCESS ||
	    c->read_back != reads)
		return 1;
	do {
		seen = verified(c);
	} while (seen < messages && now() < c->last + LIMIT_S);
	rdma_disconnect(c->id);
	return seen != messages;
}

/* Send until a send fails, which gives no event; then disconnect. */
static int send_until_break(struct client *c, double seconds, bool told)
{
	double until = now() + seconds, broke;
	bool traffic = false;
	int error = 0;

	while (c->status == IBV_WC_SUCCESS && now() < until) {
		if (!error && c->posted < c->acked + WINDOW &&
		    post_message(c)) {
			error = errno;
			/* A part of the message may have been posted. */
			c->posted++;
			printf("# posts fail: %s\n", strerror(error));
		}
		poll_sends(c);
		usleep(1000);
		if (c->acked && !traffic) {
			printf("# traffic\n");
			traffic = true;
		}
	}
	keep_acked(c);
	tell_longest(c);
	broke = now();
	if (c->status == IBV_WC_SUCCESS) {
		printf("# it still works, or hangs, after %.1f s\n", seconds);
		return 1;
	}
	if (!told)
		return 0;
	rdma_disconnect(c->id);
	if (expect(c, RDMA_CM_EVENT_DISCONNECTED, until))
		return 1;
	printf("# RDMA_CM_EVENT_DISCONNECTED after %.1f s more\n", now() - broke);
	return 0;
}

/*
 * A write that has been acknowledged completes before the next one is
 * acknowledged, even if one call posted both.  On a slow network the second
 * write takes far longer than a poll.
 */
static int told_each(struct client *c, unsigned int rounds)
{
	const struct slot *slot = &c->mem->slots[0];
	struct ibv_sge sges[2] = {
		{ (uintptr_t)slot, sizeof(slot->number), c->mr->lkey },
		{ (uintptr_t)slot->data, 8000, c->mr->lkey },
	};
	struct ibv_send_wr wrs[2] = {}, *bad;
	unsigned int i, together = 0;
	struct ibv_wc wc[2];
	int n, more;

	for (i = 0; i < 2; i++) {
		wrs[i].wr_id = i;
		wrs[i].sg_list = &sges[i];
		wrs[i].num_sge = 1;
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].send_flags = IBV_SEND_SIGNALED;
		wrs[i].wr.rdma.remote_addr = c->server.addr;
		wrs[i].wr.rdma.rkey = c->server.rkey;
	}
	wrs[0].next = &wrs[1];
	for (i = 0; i < rounds; i++) {
		c->last = now();
		if (ibv_post_send(c->id->qp, wrs, &bad))
			die("ibv_post_send");
		for (n = 0; n < 2 && now() < c->last + LIMIT_S; n += more) {
			more = ibv_poll_cq(c->id->send_cq, 2, wc);
			if (more < 0 || (more && wc[0].status))
				return 1;
			together += more == 2;
		}
		if (n != 2)
			return 1;
	}
	printf("# %u of %u times both were told of together\n", together, rounds);
	rdma_disconnect(c->id);
	/* On a busy host the program may poll too late, but not each time. */
	return together == rounds;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
	};
	struct client client = { .status = IBV_WC_SUCCESS };
	double began;
	int ret = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3 || inet_pton(AF_INET, argv[2], &addr.sin_addr) != 1)
		return 2;
	if (!strcmp(argv[1], "serve"))
		serve(&addr);
	if (argc < 4)
		return 2;
	client.no_reads = argc > 4;
	connect_to(&client, &addr,
		   strcmp(argv[1], "connect") ? LIMIT_S : atof(argv[3]));
	ret = check_last(&client);
	if (!strcmp(argv[1], "send"))
		ret |= send_all(&client, strtoull(argv[3], NULL, 0));
	else if (!strcmp(argv[1], "break") || !strcmp(argv[1], "fail"))
		ret |= send_until_break(&client, atof(argv[3]),
					argv[1][0] == 'b');
	else if (!strcmp(argv[1], "each"))
		ret |= told_each(&client, atoi(argv[3]));
	else
		rdma_disconnect(client.id);
	began = now();
	rdma_destroy_qp(client.id);
	ibv_dereg_mr(client.mr);
	ibv_dereg_mr(client.back_mr);
	rdma_destroy_id(client.id);
	rdma_destroy_event_channel(client.channel);
	printf("# destroyed in %.1f s\n", now() - began);
	return ret;
}
