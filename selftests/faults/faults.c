// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Kills one side of a connection after each step of its life.  A failure means
 * that the other side gets the wrong event or none, cannot connect again, or
 * that something stays behind.
 */
#include <kselftest_harness.h>

#include "faults.h"

#define BIT(n)		(1u << (n))
#define DISCONNECTED	BIT(RPOST_EVENT_DISCONNECTED)
#define REJECTED	BIT(RPOST_EVENT_REJECTED)
#define ESTABLISHED	BIT(RPOST_EVENT_ESTABLISHED)

/* Memory that both processes share, in which the victim reports. */
struct told {
	uint16_t port;
	int reached;
	int error;
};

struct life {
	struct rp_end end;
	struct msgs msgs;
	uint32_t listener;
	struct told *told;
};

/* ------------------------------------------------- the steps of a life */

static int step_file(struct life *l)
{
	l->end.fd = rp_open();
	return l->end.fd < 0 ? -errno : 0;
}

static int step_channel(struct life *l)
{
	l->end.channel = rp_event_channel(l->end.fd);
	return l->end.channel < 0 ? l->end.channel : 0;
}

static int step_pd(struct life *l)
{
	l->end.device = rp_first_device(l->end.fd);
	return rp_alloc_pd(l->end.fd, l->end.device, &l->end.pd);
}

static int step_cq(struct life *l)
{
	return rp_create_cq(l->end.fd, l->end.device, 64, -1, &l->end.cq);
}

static int step_mr(struct life *l)
{
	return msgs_init(&l->end, &l->msgs);
}

static int step_id(struct life *l)
{
	return rp_create_id(l->end.fd, l->end.channel, &l->end.id);
}

static int step_query_addr(struct life *l)
{
	return rp_resolve_addr(l->end.fd, l->end.id, l->told->port);
}

static int step_addr(struct life *l)
{
	return rp_expect(l->end.channel, l->end.id, RPOST_EVENT_ADDR_RESOLVED);
}

static int step_query_route(struct life *l)
{
	return rp_resolve_route(l->end.fd, l->end.id);
}

static int step_route(struct life *l)
{
	return rp_expect(l->end.channel, l->end.id, RPOST_EVENT_ROUTE_RESOLVED);
}

static int step_qp(struct life *l)
{
	return rp_create_qp(&l->end, 0);
}

static int step_recv(struct life *l)
{
	return msg_post_recv(&l->end, &l->msgs, 1);
}

static int step_connect(struct life *l)
{
	return rp_connect(l->end.fd, l->end.id);
}

static int wait_event(struct life *l)
{
	return rp_readable(l->end.channel, TEST_TIMEOUT_MS) ? 0 : -ETIME;
}

/* The peer's request or answer has arrived, and is not fetched. */
static int step_asked(struct life *l)
{
	return wait_event(l);
}

static int step_answered(struct life *l)
{
	return wait_event(l);
}

static int step_established(struct life *l)
{
	return rp_expect(l->end.channel, l->end.id, RPOST_EVENT_ESTABLISHED);
}

static int step_send(struct life *l)
{
	return msg_post_send(&l->end, &l->msgs, 2);
}

/* Wait for the completions of the send and of the survivor's message. */
static int step_completions(struct life *l)
{
	struct rpost_wc wc;
	int n;

	for (n = 0; n < 2; n++) {
		if (rp_wait_cq(&l->end.cq, &wc) != 1)
			return -ETIME;
		if (wc.status)
			return -EIO;
	}
	return msg_is(&l->msgs.m[1], 1) ? 0 : -EBADMSG;
}

static int step_disconnect(struct life *l)
{
	return rp_disconnect(l->end.fd, l->end.id);
}

static int step_disconnected(struct life *l)
{
	return rp_expect(l->end.channel, l->end.id, RPOST_EVENT_DISCONNECTED);
}

static int step_destroy_qp(struct life *l)
{
	return rp_destroy(l->end.fd, RPOST_OBJ_QP, l->end.qp);
}

static int step_destroy_id(struct life *l)
{
	return rp_destroy(l->end.fd, RPOST_OBJ_ID, l->end.id);
}

static int step_destroy_mr(struct life *l)
{
	return msgs_exit(&l->end, &l->msgs);
}

static int step_close_file(struct life *l)
{
	return close(l->end.fd);
}

static int step_bind(struct life *l)
{
	return rp_bind(l->end.fd, l->listener, 0);
}

static int step_listener(struct life *l)
{
	return rp_create_id(l->end.fd, l->end.channel, &l->listener);
}

static int step_listen(struct life *l)
{
	RP_TRY(rp_listen(l->end.fd, l->listener, 4));
	__atomic_store_n(&l->told->port, rp_port(l->end.fd, l->listener),
			 __ATOMIC_RELEASE);
	return 0;
}

static int step_request(struct life *l)
{
	return rp_take_request(&l->end, l->listener);
}

static int step_accept(struct life *l)
{
	return rp_accept(l->end.fd, l->end.id);
}

static int step_reject(struct life *l)
{
	return rp_reject(&l->end, l->end.id, NULL, 0);
}

typedef int step_fn(struct life *l);

static step_fn * const client_life[] = {
	step_file, step_channel, step_pd, step_cq, step_mr, step_id,
	step_query_addr, step_addr, step_query_route, step_route, step_qp,
	step_recv, step_connect, step_answered, step_established, step_send,
	step_completions, step_disconnect, step_disconnected, step_destroy_qp,
	step_destroy_id, step_destroy_mr, step_close_file, NULL,
};

static step_fn * const server_life[] = {
	step_file, step_channel, step_pd, step_cq, step_mr, step_listener,
	step_bind, step_listen, step_asked, step_request, step_qp, step_recv,
	step_accept, step_answered, step_established, step_send, step_completions,
	step_disconnect, step_disconnected, step_destroy_qp, step_destroy_id,
	step_destroy_mr, step_close_file, NULL,
};

static step_fn * const rejecting_life[] = {
	step_file, step_channel, step_pd, step_cq, step_mr, step_listener,
	step_bind, step_listen, step_asked, step_request, step_qp, step_reject,
	NULL,
};

/* Run the steps up to @last, then wait to be killed. */
static void live(step_fn * const *steps, step_fn *last, struct told *told)
{
	struct life l = { .told = told };
	unsigned int i;

	for (i = 0; steps[i]; i++) {
		told->error = steps[i](&l);
		if (told->error)
			fprintf(stderr, "# the victim's step %u: %d\n", i,
				told->error);
		if (told->error || steps[i] == last)
			break;
	}
	__atomic_store_n(&told->reached, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* --------------------------------------------------------- the survivor */

struct survivor {
	struct rp_end end;
	struct msgs msgs;
	uint32_t listener;	/* 0: it is the client */
	bool hold;		/* acts only once the victim is dead */
	bool begun;
	unsigned int posted;
	uint32_t seen;		/* events, by their bits */
};

static int answer(struct survivor *s)
{
	RP_TRY(rp_create_qp(&s->end, 0));
	RP_TRY(msg_post_recv(&s->end, &s->msgs, 2));
	s->posted++;
	return 0;
}

/* Fetch an event and take the survivor's next step. */
static int survivor_event(struct survivor *s)
{
	struct rpost_get_event event;
	int fd = s->end.fd;

	RP_TRY(rp_get_event(s->end.channel, &event));
	s->seen |= BIT(event.event);
	switch (event.event) {
	case RPOST_EVENT_ADDR_RESOLVED:
		return rp_resolve_route(fd, s->end.id);
	case RPOST_EVENT_ROUTE_RESOLVED:
		RP_TRY(answer(s));
		return rp_connect(fd, s->end.id);
	case RPOST_EVENT_CONNECT_REQUEST:
		s->end.id = event.id;
		if (s->hold)
			return 0;
		RP_TRY(answer(s));
		return rp_accept(fd, s->end.id);
	case RPOST_EVENT_ESTABLISHED:
		RP_TRY(msg_post_send(&s->end, &s->msgs, 1));
		s->posted++;
		return 0;
	case RPOST_EVENT_DISCONNECTED:
		return rp_disconnect(fd, s->end.id);
	default:
		return 0;
	}
}

static int client_begin(struct survivor *s, uint16_t port)
{
	s->begun = true;
	RP_TRY(rp_create_id(s->end.fd, s->end.channel, &s->end.id));
	return rp_resolve_addr(s->end.fd, s->end.id, port);
}

static bool may_begin(const struct survivor *s, uint16_t port, bool killed)
{
	return !s->listener && !s->begun && port && (!s->hold || killed);
}

/*
 * The victim may be killed when it has done @last, but not before its request
 * has arrived.
 */
static bool may_kill(const struct survivor *s, const struct told *told)
{
	return __atomic_load_n(&told->reached, __ATOMIC_ACQUIRE) &&
	       (!s->hold || !s->listener ||
		s->seen & BIT(RPOST_EVENT_CONNECT_REQUEST));
}

/*
 * If the victim dies between its answer and the answer to that, its peer gets
 * REJECTED; or ib_cm looks at the victim's REJ before the REP, drops it, and
 * the peer is told only when it disconnects.
 */
#define UNTOLD_MS	5000

/*
 * Kill @victim and continue until one of @ends is told.  Returns 0 or the first
 * error.
 */
static int survive(struct survivor *s, pid_t victim, struct told *told,
		   uint32_t ends)
{
	struct pollfd pfd = { .fd = s->end.channel, .events = POLLIN };
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS, last = 0;
	bool killed = false, untold = ends == (REJECTED | DISCONNECTED);
	uint16_t port;
	int ret = 0;

	while (!ret && (!killed || (ends && !(s->seen & (DISCONNECTED | REJECTED))))) {
		port = __atomic_load_n(&told->port, __ATOMIC_ACQUIRE);
		if (may_begin(s, port, killed)) {
			ret = client_begin(s, port);
		} else if (!killed && may_kill(s, told)) {
			killed = !kill(victim, SIGKILL) &&
				 waitpid(victim, NULL, 0) == victim;
			last = rp_now_ms();
		} else if (poll(&pfd, 1, 2) == 1) {
			ret = survivor_event(s);
			last = rp_now_ms();
		} else if (killed && untold && s->seen & ESTABLISHED &&
			   rp_now_ms() > last + UNTOLD_MS) {
			ret = rp_disconnect(s->end.fd, s->end.id);
			untold = false;
		} else if (rp_now_ms() > end) {
			ret = -ETIME;
		}
	}
	if (!killed) {
		kill(victim, SIGKILL);
		waitpid(victim, NULL, 0);
	}
	if (ret || told->error)
		fprintf(stderr, "# %d, victim %d, events %#x\n", ret,
			told->error, s->seen);
	return ret ? ret : told->error;
}

/* All posted work completes, and received data is right. */
static int take_back(struct survivor *s)
{
	struct rpost_wc wc;

	for (; s->posted; s->posted--) {
		if (rp_wait_cq(&s->end.cq, &wc) != 1)
			return -ETIME;
		if (!wc.status && wc.wr_id == 2 && !msg_is(&s->msgs.m[2], 2))
			return -EBADMSG;
	}
	return rp_quiet_cq(&s->end.cq) ? 0 : -EPROTO;
}

/* Connect to another program and exchange data. */
static int goes_on(struct survivor *s)
{
	struct rp_end other, *client = &s->end, *server = &other;
	uint32_t listener = s->listener;

	RP_TRY(rp_end_init(&other));
	if (listener) {
		client = &other;
		server = &s->end;
	} else {
		RP_TRY(rp_listener(&other, &listener));
	}
	RP_TRY(rp_join(client, server, listener, 0));
	RP_TRY(msgs_exchange(client, server));
	RP_TRY(msgs_exchange(server, client));
	rp_end_close(&other);
	return rp_expect(s->end.channel, s->end.id, RPOST_EVENT_DISCONNECTED);
}

/* --------------------------------------------------------------- tests */

FIXTURE(killed) {
	struct survivor s;
	struct told *told;
	char counts[RP_COUNTS];
};

FIXTURE_VARIANT(killed) {
	step_fn * const *life;
	step_fn *last;
	uint32_t ends;		/* events, of which one must come; or 0 */
	bool hold;
};

#define CLIENT(name, how, wait)						\
	FIXTURE_VARIANT_ADD(killed, client_##name) {			\
		.life = client_life,					\
		.last = step_##name,					\
		.ends = how,						\
		.hold = wait,						\
	}

CLIENT(file, 0, false);
CLIENT(channel, 0, false);
CLIENT(pd, 0, false);
CLIENT(cq, 0, false);
CLIENT(mr, 0, false);
CLIENT(id, 0, false);
CLIENT(query_addr, 0, false);
CLIENT(addr, 0, false);
CLIENT(query_route, 0, false);
CLIENT(route, 0, false);
CLIENT(qp, 0, false);
CLIENT(recv, 0, false);
/* A request that was not accepted gets no event; ACCEPT fails. */
CLIENT(connect, 0, true);
CLIENT(answered, DISCONNECTED, false);
CLIENT(established, DISCONNECTED, false);
CLIENT(send, DISCONNECTED, false);
CLIENT(completions, DISCONNECTED, false);
CLIENT(disconnect, DISCONNECTED, false);
CLIENT(disconnected, DISCONNECTED, false);
CLIENT(destroy_qp, DISCONNECTED, false);
CLIENT(destroy_id, DISCONNECTED, false);
CLIENT(destroy_mr, DISCONNECTED, false);
CLIENT(close_file, DISCONNECTED, false);

#define SERVER(name, how, wait)						\
	FIXTURE_VARIANT_ADD(killed, server_##name) {			\
		.life = server_life,					\
		.last = step_##name,					\
		.ends = how,						\
		.hold = wait,						\
	}

SERVER(listener, 0, false);
SERVER(bind, 0, false);
SERVER(listen, REJECTED, true);
SERVER(asked, REJECTED, false);
SERVER(request, REJECTED, false);
SERVER(qp, REJECTED, false);
SERVER(recv, REJECTED, false);
/* The answer may not have arrived yet. */
SERVER(accept, REJECTED | DISCONNECTED, false);
SERVER(answered, DISCONNECTED, false);
SERVER(established, DISCONNECTED, false);
SERVER(send, DISCONNECTED, false);
SERVER(completions, DISCONNECTED, false);
SERVER(disconnect, DISCONNECTED, false);
SERVER(disconnected, DISCONNECTED, false);
SERVER(destroy_qp, DISCONNECTED, false);
SERVER(destroy_id, DISCONNECTED, false);
SERVER(destroy_mr, DISCONNECTED, false);
SERVER(close_file, DISCONNECTED, false);

FIXTURE_VARIANT_ADD(killed, server_reject) {
	.life = rejecting_life,
	.last = step_reject,
	.ends = REJECTED,
};

FIXTURE_SETUP(killed)
{
	rp_counts(self->counts);
	self->told = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->told);
	self->s.hold = variant->hold;
	ASSERT_EQ(0, rp_end_init(&self->s.end));
	ASSERT_EQ(0, msgs_init(&self->s.end, &self->s.msgs));
	if (variant->life != client_life)
		return;
	ASSERT_EQ(0, rp_listener(&self->s.end, &self->s.listener));
	self->told->port = rp_port(self->s.end.fd, self->s.listener);
}

FIXTURE_TEARDOWN(killed)
{
	munmap(self->told, 4096);
}

TEST_F(killed, after)
{
	struct survivor *s = &self->s;
	pid_t victim = fork();

	ASSERT_LE(0, victim);
	if (!victim) {
		/* The victim must not keep the survivor's file open. */
		rp_end_close(&s->end);
		live(variant->life, variant->last, self->told);
	}
	ASSERT_EQ(0, survive(s, victim, self->told, variant->ends));
	if (variant->ends) {
		EXPECT_NE(0, s->seen & variant->ends);
	} else {
		if (s->end.id && s->listener)
			EXPECT_TRUE(rp_id_reaches(s->end.fd, s->end.id,
						  RPOST_ID_ERROR));
		EXPECT_TRUE(rp_quiet(s->end.channel));
	}

	if (s->end.id)
		EXPECT_EQ(-EINVAL, rp_accept(s->end.fd, s->end.id));
	EXPECT_EQ(0, take_back(s));
	if (s->end.qp)
		EXPECT_EQ(0, rp_destroy(s->end.fd, RPOST_OBJ_QP, s->end.qp));
	if (s->end.id)
		EXPECT_EQ(0, rp_destroy(s->end.fd, RPOST_OBJ_ID, s->end.id));
	EXPECT_EQ(0, goes_on(s));
	rp_end_close(&s->end);
	munmap(s->msgs.m, RP_DEPTH * MSG_BYTES);
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_KILL);
}

TEST_HARNESS_MAIN
