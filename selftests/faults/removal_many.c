// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Removes the device under hundreds of connections, while threads sleep for its
 * events, and while programs are killed; and takes its link down.  A failure
 * means that an id is not told, that a sleeper is not woken, or that something
 * stays behind.
 *
 * Needs RPOST_TEST_REMOVE and RPOST_TEST_ADD as removal.c does, the same for
 * the driver (RPOST_TEST_UNBIND, RPOST_TEST_BIND) and for the link
 * (RPOST_TEST_DOWN, RPOST_TEST_UP).  RPOST_TEST_CONNECTIONS is the number of
 * connections.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#define RP_DEPTH	4

#include "faults.h"

RP_USE_DEPTH()

#define MAX_CONNS	1000

struct conn {
	struct rp_end c, s;
};

/* Two open files, connected many times, with messages and receives. */
struct many {
	struct rp_end c, s;
	struct msgs out, in;
	struct conn conns[MAX_CONNS];
	unsigned int n;
	uint32_t listener;
};

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

static int big_cq(struct rp_end *end, unsigned int n)
{
	rp_unmap_cq(&end->cq);
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_CQ, end->cq.cmd.handle));
	return rp_create_cq(end->fd, end->device, 2 * RP_DEPTH * n, -1,
			    &end->cq);
}

static int many_init(struct many *m, unsigned int n)
{
	unsigned int i;

	memset(m, 0, sizeof(*m));
	RP_TRY(rp_end_init(&m->c));
	RP_TRY(rp_end_init(&m->s));
	RP_TRY(big_cq(&m->c, n));
	RP_TRY(big_cq(&m->s, n));
	RP_TRY(msgs_init(&m->c, &m->out));
	RP_TRY(msgs_init(&m->s, &m->in));
	RP_TRY(rp_listener(&m->s, &m->listener));
	for (i = 0; i < n; i++) {
		m->conns[i] = (struct conn) { m->c, m->s };
		RP_TRY(rp_join(&m->conns[i].c, &m->conns[i].s, m->listener, 0));
		m->n++;
	}
	return 0;
}

static void many_exit(struct many *m)
{
	rp_end_close(&m->c);
	rp_end_close(&m->s);
	munmap(m->out.m, RP_DEPTH * MSG_BYTES);
	munmap(m->in.m, RP_DEPTH * MSG_BYTES);
}

/* Send a message on each.  Returns the first error but that of a full queue. */
static int many_talk(struct many *m, unsigned long *done)
{
	struct rpost_wc wc = { 0 };
	unsigned int i;
	int ret;

	for (i = 0; i < m->n; i++) {
		ret = msg_post_recv(&m->conns[i].s, &m->in, 1);
		if (!ret || ret == -ENOMEM)
			ret = msg_post_send(&m->conns[i].c, &m->out, 1);
		if (ret && ret != -ENOMEM)
			return ret;
		while (rp_poll_cq(&m->c.cq, &wc) == 1)
			*done += !wc.status;
		while (rp_poll_cq(&m->s.cq, &wc) == 1)
			;
	}
	return 0;
}

/*
 * Send until a message has arrived, or until an error.  Returns 0 or an error.
 */
static int talk_until(struct many *m, bool arrived)
{
	uint64_t end = rp_now_ms() + REMOVAL_MS;
	unsigned long done = 0;
	int ret;

	do {
		ret = many_talk(m, &done);
	} while (!ret && !(arrived && done) && rp_now_ms() < end);
	return ret || done ? ret : -ETIME;
}

/* Fetch an event for each of @ids ids.  Returns 0 or a negative errno. */
static int all_told(int channel, unsigned int ids)
{
	struct rpost_get_event event;
	unsigned int told = 0;

	while (told < ids) {
		RP_TRY(rp_get_event(channel, &event));
		told += event.event == RPOST_EVENT_DEVICE_REMOVAL;
	}
	return rp_quiet(channel) ? 0 : -EPROTO;
}

static void *run_command(void *command)
{
	usleep(20000);
	return (void *)(intptr_t)system(command);
}

FIXTURE(removed) {
	const char *remove, *add;
	struct many *m;
	char counts[RP_COUNTS];
	enum fault fault;
};

FIXTURE_VARIANT(removed) {
	const char *remove, *add;
};

FIXTURE_VARIANT_ADD(removed, device) {
	.remove = "RPOST_TEST_REMOVE",
	.add = "RPOST_TEST_ADD",
};

FIXTURE_VARIANT_ADD(removed, driver) {
	.remove = "RPOST_TEST_UNBIND",
	.add = "RPOST_TEST_BIND",
};

FIXTURE_SETUP(removed)
{
	self->remove = getenv(variant->remove);
	self->add = getenv(variant->add);
	self->m = mmap(NULL, sizeof(*self->m), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->m);
	rp_counts(self->counts);
}

FIXTURE_TEARDOWN(removed)
{
	struct rp_end c, s;

	munmap(self->m, sizeof(*self->m));
	if (!self->remove || !self->add)
		return;
	/* The device comes back, and a new connection works. */
	EXPECT_EQ(0, system(self->add));
	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	EXPECT_EQ(0, msgs_exchange(&c, &s));
	rp_end_close(&c);
	rp_end_close(&s);
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_REMOVAL);
}

#define NEED_COMMANDS()							\
	do {								\
		if (!self->remove || !self->add)			\
			SKIP(return, "%s and %s are not set",		\
			     variant->remove, variant->add);		\
	} while (0)

TEST_F(removed, under_hundreds_of_connections)
{
	struct many *m = self->m;
	uint64_t began = rp_now_ms(), removed;
	pthread_t thread;
	void *status;

	NEED_COMMANDS();
	ASSERT_EQ(0, many_init(m, number("RPOST_TEST_CONNECTIONS", 200)));
	ASSERT_EQ(0, talk_until(m, true));
	removed = rp_now_ms();
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_command,
				    (void *)self->remove));
	EXPECT_EQ(-ENODEV, talk_until(m, false));
	ASSERT_EQ(0, pthread_join(thread, &status));
	EXPECT_EQ(NULL, status);
	printf("# %u connections in %llu ms, removed in %llu ms\n", m->n,
	       (unsigned long long)(removed - began),
	       (unsigned long long)(rp_now_ms() - removed));
	EXPECT_EQ(0, all_told(m->c.channel, m->n));
	EXPECT_EQ(0, all_told(m->s.channel, m->n + 1));
	/*
	 * Destroy all but 100 connections; closing the files ends the others.
	 */
	for (; m->n > 100; m->n--) {
		struct conn *conn = &m->conns[m->n - 1];

		EXPECT_EQ(0, rp_leave(&conn->c));
		EXPECT_EQ(0, rp_leave(&conn->s));
	}
	many_exit(m);
}

/* ------------------------------------------ sleeping and killed programs */

struct sleeper {
	int channel;
	pid_t tid;
};

static void *fetch(void *arg)
{
	struct rpost_get_event event = { .size = sizeof(event) };
	struct sleeper *s = arg;
	int ret;

	rp_put_tid(&s->tid);
	ret = rp_ioctl(s->channel, RPOST_IOC_GET_EVENT, &event);
	return (void *)(intptr_t)(ret || event.event != RPOST_EVENT_DEVICE_REMOVAL);
}

static void *sleep_for_completion(void *arg)
{
	struct rpost_comp_event event;
	struct sleeper *s = arg;

	rp_put_tid(&s->tid);
	return (void *)(intptr_t)(read(s->channel, &event, sizeof(event)) !=
				  sizeof(event));
}

TEST_F(removed, wakes_who_sleeps)
{
	struct sleeper sleepers[3] = { 0 };
	pthread_t threads[3];
	struct rp_end idle, c, s;
	uint32_t listener;
	void *status;
	int channel, i;

	NEED_COMMANDS();
	ASSERT_EQ(0, rp_end_init(&idle));
	/* The only queue pair of this queue, which made it hold events back, has gone. */
	sleepers[2].channel = rp_end_add_channel(&idle, 16);
	ASSERT_LE(0, sleepers[2].channel);
	ASSERT_EQ(0, rp_create_qp(&idle, 0));
	ASSERT_EQ(0, rp_destroy(idle.fd, RPOST_OBJ_QP, idle.qp));
	ASSERT_EQ(0, rp_arm_cq(&idle.cq, 0));
	ASSERT_EQ(0, rp_create_id(idle.fd, idle.channel, &idle.id));
	ASSERT_EQ(0, rp_bind(idle.fd, idle.id, 0));
	ASSERT_EQ(0, rp_end_init(&c));
	ASSERT_EQ(0, rp_end_init(&s));
	ASSERT_EQ(0, rp_listener(&s, &listener));
	channel = rp_comp_channel(c.fd);
	ASSERT_LE(0, channel);
	rp_unmap_cq(&c.cq);
	ASSERT_EQ(0, rp_create_cq(c.fd, c.device, 16, channel, &c.cq));
	ASSERT_EQ(0, rp_join(&c, &s, listener, 0));
	ASSERT_EQ(0, rp_post_recv(&c, 1, NULL, 0, 0));
	ASSERT_EQ(0, rp_arm_cq(&c.cq, 0));
	sleepers[0].channel = idle.channel;
	sleepers[1].channel = channel;
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, fetch, &sleepers[0]));
	for (i = 1; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, sleep_for_completion,
					    &sleepers[i]));
	for (i = 0; i < 3; i++)
		ASSERT_TRUE(rp_wait_asleep(&sleepers[i].tid));
	EXPECT_EQ(0, system(self->remove));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &status));
		EXPECT_EQ(NULL, status);
	}
	/* Nothing arms a device that has gone: who asks in the ring must not sleep. */
	for (i = 0; i < 64; i++)
		EXPECT_EQ(0, rp_fetch(&c.cq));
	EXPECT_TRUE(rp_need_poll(&c.cq));
	close(channel);
	close(sleepers[2].channel);
	rp_end_close(&idle);
	rp_end_close(&c);
	rp_end_close(&s);
}

TEST_F(removed, while_a_program_is_killed)
{
	unsigned long done = 0;
	int pipefd[2], round;
	pthread_t thread;
	char ok = 0;
	void *status;
	pid_t pid;

	NEED_COMMANDS();
	for (round = 0; round < 3; round++) {
		if (round)
			ASSERT_EQ(0, system(self->add));
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			ok = !many_init(self->m, 10) && !many_talk(self->m, &done);
			if (write(pipefd[1], &ok, 1) != 1)
				_exit(1);
			for (;;)
				many_talk(self->m, &done);
		}
		ASSERT_EQ(1, read(pipefd[0], &ok, 1));
		EXPECT_EQ(1, ok);
		ASSERT_EQ(0, pthread_create(&thread, NULL, run_command,
					    (void *)self->remove));
		/* The program is killed before, during or after the removal. */
		usleep(15000 + 10000 * round);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		ASSERT_EQ(0, pthread_join(thread, &status));
		EXPECT_EQ(NULL, status);
		EXPECT_EQ(0, rp_wait_counts(self->counts));
		SURVIVED(FAULT_KILL);
		close(pipefd[0]);
		close(pipefd[1]);
	}
}

/* Groups are joined before and during the removal; later a join fails. */
TEST_F(removed, from_multicast_groups)
{
	struct rpost_join_mcast join = {
		.size = sizeof(join),
		.addr_len = sizeof(struct sockaddr_in),
	};
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct rpost_get_event event;
	struct rp_end end;
	unsigned int i;

	NEED_COMMANDS();
	ASSERT_EQ(0, rp_end_init(&end));
	ASSERT_EQ(0, rp_create_id_of(end.fd, end.channel, RPOST_PS_UDP,
				     RPOST_QPT_UD, &end.id));
	ASSERT_EQ(0, rp_bind(end.fd, end.id, 0));
	join.id = end.id;
	for (i = 0; i < 8; i++) {
		sin.sin_addr.s_addr = htonl(0xef010203 + i);
		memcpy(&join.addr, &sin, sizeof(sin));
		ASSERT_EQ(0, rp_ioctl(end.fd, RPOST_IOC_JOIN_MCAST, &join));
		/* Fetch the events of the first four groups only. */
		if (i < 4) {
			ASSERT_EQ(0, rp_get_event(end.channel, &event));
			EXPECT_EQ(RPOST_EVENT_MULTICAST_JOIN, event.event);
		}
	}
	EXPECT_EQ(0, system(self->remove));
	do {
		ASSERT_EQ(0, rp_get_event(end.channel, &event));
	} while (event.event != RPOST_EVENT_DEVICE_REMOVAL);
	EXPECT_EQ(-ENODEV, rp_ioctl(end.fd, RPOST_IOC_JOIN_MCAST, &join));
	EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_ID, end.id));
	rp_end_close(&end);
}

/* --------------------------------------------------------- the link is down */

/*
 * While the link is down, connections may fail; but no message that was
 * reported to have arrived is lost, a program that dies leaves nothing behind,
 * and with the link up a new device works.
 */
TEST(link_down)
{
	const char *down = getenv("RPOST_TEST_DOWN"), *up = getenv("RPOST_TEST_UP");
	const char *remove = getenv("RPOST_TEST_REMOVE");
	const char *add = getenv("RPOST_TEST_ADD");
	char counts[RP_COUNTS], begun = 0;
	unsigned long done = 0;
	int pipefd[2], i;
	struct rp_end c, s;
	struct many *m;
	pid_t pid;

	if (!down || !up || !remove || !add)
		SKIP(return, "RPOST_TEST_DOWN and RPOST_TEST_UP are not set");
	rp_counts(counts);
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, m);
	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		begun = !many_init(m, 5) && !many_talk(m, &done);
		if (write(pipefd[1], &begun, 1) != 1)
			_exit(1);
		for (;;)
			many_talk(m, &done);
	}
	ASSERT_EQ(1, read(pipefd[0], &begun, 1));
	EXPECT_EQ(1, begun);
	ASSERT_EQ(0, many_init(m, 5));
	ASSERT_EQ(0, many_talk(m, &done));
	ASSERT_EQ(0, system(down));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(0, many_talk(m, &done));
		usleep(5000);
	}
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	ASSERT_EQ(0, system(up));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, many_talk(m, &done));
	many_exit(m);
	EXPECT_EQ(0, rp_wait_counts(counts));

	/* After that, new connections of rxe fail until it is created anew. */
	ASSERT_EQ(0, system(remove));
	ASSERT_EQ(0, system(add));
	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	EXPECT_EQ(0, msgs_exchange(&c, &s));
	rp_end_close(&c);
	rp_end_close(&s);
	EXPECT_EQ(0, rp_wait_counts(counts));
	munmap(m, sizeof(*m));
	SURVIVED(FAULT_LINK);
}

TEST_HARNESS_MAIN
