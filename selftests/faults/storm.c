// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Kills a thousand programs at random points while a server serves them.  A
 * failure means that the server gets a wrong message or stops serving, or that
 * the kernel leaks objects or memory.
 *
 * RPOST_TEST_STORM is the number of programs, RPOST_TEST_WIDTH how many run at
 * a time, RPOST_TEST_SEED the seed of the random numbers.
 */
#include <kselftest_harness.h>
#include <limits.h>

#include "faults.h"

#define MAX_WIDTH	256
#define MAX_CONNS	(2 * MAX_WIDTH)

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

/* ---------------------------------------------- the kernel's allocations */

#define MAX_CACHES	64

struct caches {
	unsigned int count;
	char name[MAX_CACHES][32];
	long objects[MAX_CACHES];
};

static void shrink_cache(const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return;
	if (write(fd, "1", 1) != 1)
		perror(path);
	close(fd);
}

/*
 * Read the numbers of objects in the general caches.  Returns false if this
 * user may not read them.
 */
static bool read_caches(struct caches *c)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	char line[512];

	if (!f)
		return false;
	c->count = 0;
	while (fgets(line, sizeof(line), f) && c->count < MAX_CACHES) {
		if (!strncmp(line, "kmalloc", 7) &&
		    sscanf(line, "%31s %ld", c->name[c->count],
			   &c->objects[c->count]) == 2)
			c->count++;
	}
	fclose(f);
	return c->count;
}

/* The numbers are exact once the caches hold no free objects back. */
static bool count_caches(struct caches *c)
{
	unsigned int i;

	if (!read_caches(c))
		return false;
	for (i = 0; i < c->count; i++)
		shrink_cache(c->name[i]);
	return read_caches(c);
}

/*
 * Returns how much the cache that has grown most has grown; *@at is its index.
 */
static long growth(const struct caches *old, const struct caches *new,
		   unsigned int *at)
{
	long most = LONG_MIN;
	unsigned int i;

	for (i = 0; i < new->count; i++) {
		if (new->objects[i] - old->objects[i] <= most)
			continue;
		most = new->objects[i] - old->objects[i];
		*at = i;
	}
	return most;
}

/* --------------------------------------------------------- the victims */

enum reached { BORN, ASKED, TALKING };

static void talk(struct rp_end *end, struct rp_end *to, uint8_t *reached)
{
	struct msgs out, in;
	struct rpost_wc wc;
	uint64_t n;

	if (msgs_init(end, &out) || (to && msgs_init(to, &in)))
		return;
	for (n = 0;; n++) {
		if (to)
			msg_post_recv(to, &in, n);
		msg_post_send(end, &out, n);
		if (rp_wait_cq(&end->cq, &wc) != 1 || wc.status)
			return;
		if (to && (rp_wait_cq(&to->cq, &wc) != 1 || wc.status ||
			   !msg_is(&in.m[n % RP_DEPTH], n)))
			return;
		*reached = TALKING;
	}
}

static void be_client(uint16_t port, uint8_t *reached)
{
	struct rp_end end;

	if (rp_end_init(&end) || rp_client_route(&end, port) ||
	    rp_create_qp(&end, 0) || rp_connect(end.fd, end.id))
		return;
	*reached = ASKED;
	if (!rp_expect(end.channel, end.id, RPOST_EVENT_ESTABLISHED))
		talk(&end, NULL, reached);
}

static void be_both(uint8_t *reached)
{
	struct rp_end c, s;

	if (!rp_connect_pair(&c, &s, 0))
		talk(&c, &s, reached);
}

static void be_server(void)
{
	struct rp_end end;
	uint32_t listener;

	if (!rp_end_init(&end))
		rp_listener(&end, &listener);
}

static void be_something(unsigned int kind, uint16_t port, uint8_t *reached)
{
	if (kind < 7)
		be_client(port, reached);
	else if (kind < 9)
		be_both(reached);
	else
		be_server();
	for (;;)
		pause();
}

/* ----------------------------------------------------------- the server */

struct conn {
	uint32_t id, qp;
	uint64_t next;		/* message to receive */
};

struct server {
	struct rp_end end;
	struct msg *m;
	struct rpost_reg_mr mr;
	struct conn conns[MAX_CONNS];
	unsigned int live;
	unsigned long requests, messages, given_up, wrong;
	uint32_t listener;
	uint16_t port;
};

static int server_init(struct server *s)
{
	size_t bytes = MAX_CONNS * MSG_BYTES;

	memset(s, 0, sizeof(*s));
	RP_TRY(rp_end_init(&s->end));
	rp_unmap_cq(&s->end.cq);
	RP_TRY(rp_destroy(s->end.fd, RPOST_OBJ_CQ, s->end.cq.cmd.handle));
	RP_TRY(rp_create_cq(s->end.fd, s->end.device, 16 * MAX_CONNS, -1,
			    &s->end.cq));
	s->m = rp_pages(bytes);
	RP_TRY(rp_reg_mr(s->end.fd, s->end.pd, s->m, bytes,
			 RPOST_ACCESS_LOCAL_WRITE, &s->mr));
	RP_TRY(rp_create_id(s->end.fd, s->end.channel, &s->listener));
	RP_TRY(rp_bind(s->end.fd, s->listener, 0));
	RP_TRY(rp_listen(s->end.fd, s->listener, 128));
	s->port = rp_port(s->end.fd, s->listener);
	return 0;
}

/* The wr_id names the slot @i and the id that uses it now. */
static int server_recv(struct server *s, unsigned int i)
{
	s->end.qp = s->conns[i].qp;
	return rp_post_recv(&s->end, (uint64_t)s->conns[i].id << 32 | i,
			    &s->m[i], MSG_BYTES, s->mr.lkey);
}

static void server_end(struct server *s, unsigned int i)
{
	struct conn *c = &s->conns[i];

	if (c->qp && rp_destroy(s->end.fd, RPOST_OBJ_QP, c->qp))
		s->wrong++;
	if (rp_destroy(s->end.fd, RPOST_OBJ_ID, c->id))
		s->wrong++;
	memset(c, 0, sizeof(*c));
	s->live--;
}

static void server_request(struct server *s, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < MAX_CONNS && s->conns[i].id; i++)
		;
	s->requests++;
	if (i == MAX_CONNS) {
		rp_destroy(s->end.fd, RPOST_OBJ_ID, id);
		return;
	}
	s->conns[i] = (struct conn) { .id = id };
	s->live++;
	s->end.id = id;
	if (!rp_create_qp(&s->end, 0))
		s->conns[i].qp = s->end.qp;
	/* The client may be dead already. */
	if (!s->conns[i].qp || server_recv(s, i) || rp_accept(s->end.fd, id))
		server_end(s, i);
}

static void server_events(struct server *s, int ms)
{
	struct pollfd pfd = { .fd = s->end.channel, .events = POLLIN };
	struct rpost_get_event event;
	unsigned int i;

	for (; poll(&pfd, 1, ms) == 1; ms = 0) {
		if (rp_get_event(s->end.channel, &event))
			break;
		if (event.event == RPOST_EVENT_CONNECT_REQUEST)
			server_request(s, event.id);
		if (event.event == RPOST_EVENT_CONNECT_REQUEST ||
		    event.event == RPOST_EVENT_ESTABLISHED)
			continue;
		for (i = 0; i < MAX_CONNS; i++) {
			if (s->conns[i].id == event.id)
				server_end(s, i);
		}
	}
}

static void server_messages(struct server *s)
{
	struct rpost_wc wc = { 0 };
	struct conn *c;
	unsigned int i;

	while (rp_poll_cq(&s->end.cq, &wc) == 1) {
		i = (uint32_t)wc.wr_id;
		c = &s->conns[i];
		if (wc.status || c->id != wc.wr_id >> 32)
			continue;
		s->messages++;
		if (wc.byte_len != MSG_BYTES || !msg_is(&s->m[i], c->next++))
			s->wrong++;
		server_recv(s, i);
	}
}

/* ------------------------------------------------------------ the storm */

struct victim {
	pid_t pid;
	uint64_t dies;
	bool killed;
};

struct storm {
	struct server server;
	struct victim victims[MAX_WIDTH];
	uint8_t *reached;	/* by slot, in shared memory */
	unsigned int width, started, killed, alive;
	unsigned int dead_in[TALKING + 1];
	unsigned int span_ms;	/* victims die within this time */
};

static int storm_spawn(struct storm *st, unsigned int i)
{
	struct victim *v = &st->victims[i];
	unsigned int kind = random() % 10;

	st->reached[i] = BORN;
	v->pid = fork();
	if (v->pid < 0)
		return -errno;
	if (!v->pid) {
		/* The victim's error messages do not matter. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		rp_end_close(&st->server.end);
		be_something(kind, st->server.port, &st->reached[i]);
	}
	v->dies = rp_now_ms() + random() % st->span_ms;
	v->killed = false;
	st->started++;
	st->alive++;
	return 0;
}

/* Adapt the time so that half of the victims die before they have traffic. */
static void storm_adapt(struct storm *st, enum reached reached)
{
	st->dead_in[reached]++;
	if (reached == TALKING && st->span_ms > 20)
		st->span_ms -= st->span_ms / 16;
	else if (reached != TALKING && st->span_ms < 10000)
		st->span_ms += st->span_ms / 32 + 1;
}

static int storm_victims(struct storm *st, unsigned int until)
{
	unsigned int i;
	int ret;

	for (i = 0; i < st->width; i++) {
		struct victim *v = &st->victims[i];

		if (!v->pid && st->started < until) {
			ret = storm_spawn(st, i);
			if (ret)
				return ret;
		} else if (v->pid && !v->killed && rp_now_ms() >= v->dies) {
			if (kill(v->pid, SIGKILL))
				return -errno;
			storm_adapt(st, st->reached[i]);
			v->killed = true;
		} else if (v->killed && waitpid(v->pid, NULL, WNOHANG) == v->pid) {
			v->pid = 0;
			v->killed = false;
			st->killed++;
			st->alive--;
		}
	}
	return 0;
}

/*
 * The REJ of a client that dies may overtake its request in the kernel's
 * connection manager, which then forgets the request.  A server that accepts is
 * then told after a minute, when its answer was repeated often enough
 * (RPOST_EVENT_UNREACHABLE), or gives up earlier, as this one does.  A server
 * whose connection was established is always told.
 */
static int give_up(struct server *s)
{
	struct rpost_query_id query;
	unsigned int i;

	for (i = 0; i < MAX_CONNS; i++) {
		if (!s->conns[i].id)
			continue;
		RP_TRY(rp_query_id(s->end.fd, s->conns[i].id, &query));
		if (query.state != RPOST_ID_ACCEPTING) {
			fprintf(stderr, "# id %u lives, state %u, message %llu\n",
				s->conns[i].id, query.state,
				(unsigned long long)s->conns[i].next);
			return -ETIME;
		}
		server_end(s, i);
		s->given_up++;
	}
	return 0;
}

/*
 * Start and kill @n more programs, and wait until the server has no connection
 * and no completion left.
 */
static int storm(struct storm *st, unsigned int n)
{
	unsigned int until = st->started + n;
	uint64_t end;
	int ret;

	while (st->killed < until) {
		ret = storm_victims(st, until);
		if (ret)
			return ret;
		server_events(&st->server, 1);
		server_messages(&st->server);
	}
	end = rp_now_ms() + TEST_TIMEOUT_MS / 2;
	while (st->server.live && rp_now_ms() < end)
		server_events(&st->server, 1);
	/* On a slow machine, established connections get more time to end. */
	end = rp_now_ms() + COUNTS_MS;
	while ((ret = give_up(&st->server)) == -ETIME && rp_now_ms() < end)
		server_events(&st->server, 1000);
	/* A message may have arrived after the loop's last look. */
	server_messages(&st->server);
	return ret;
}

/*
 * Kill @n more programs.  Returns 0 if no cache has grown by one object for
 * every other program that died with traffic, -ENOBUFS if one has, or another
 * negative errno.
 */
static int storm_without_growth(struct storm *st, unsigned int n)
{
	unsigned int talking = st->dead_in[TALKING], at = 0;
	struct caches before, after;
	bool caches = count_caches(&before);
	long more, slack;
	uint64_t end;

	RP_TRY(storm(st, n));
	talking = st->dead_in[TALKING] - talking;
	if (!caches)
		return 0;
	if (talking < 32) {
		printf("# too few died with traffic to tell a leak of slab memory\n");
		return 0;
	}
	slack = talking / 2;
	end = rp_now_ms() + COUNTS_MS;
	do {
		usleep(200000);
		more = count_caches(&after) ? growth(&before, &after, &at) : 0;
	} while (more >= slack && rp_now_ms() < end);
	printf("# %s has grown most, by %ld objects, while %u died with traffic\n",
	       after.name[at], more, talking);
	return more < slack ? 0 : -ENOBUFS;
}

FIXTURE(storm) {
	struct storm *st;
	unsigned int seed;
};

FIXTURE_SETUP(storm)
{
	self->st = mmap(NULL, sizeof(*self->st), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->st);
	self->st->reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->st->reached);
	self->st->width = number("RPOST_TEST_WIDTH", 24);
	ASSERT_GE(MAX_WIDTH, self->st->width);
	self->st->span_ms = 100;
	self->seed = number("RPOST_TEST_SEED", rp_now_ms());
	srandom(self->seed);
}

FIXTURE_TEARDOWN(storm)
{
	munmap(self->st->reached, 4096);
	munmap(self->st, sizeof(*self->st));
}

TEST_F(storm, of_kills)
{
	unsigned int half = number("RPOST_TEST_STORM", 200) / 2, i;
	struct storm *st = self->st;
	struct server *s = &st->server;
	char counts[RP_COUNTS];
	uint64_t began = rp_now_ms();
	struct rp_end client;
	int ret = -ENOBUFS;

	rp_counts(counts);
	ASSERT_EQ(0, server_init(s));
	/* Memory that is allocated once is allocated in the first half. */
	ASSERT_EQ(0, storm(st, half));
	/*
	 * Other users of the caches may grow as well, but a leak grows each
	 * time.
	 */
	for (i = 0; i < 3 && ret == -ENOBUFS; i++)
		ret = storm_without_growth(st, half);
	EXPECT_EQ(0, ret);
	printf("# %u killed in %llu ms, %u at a time, seed %u: %u before they asked, %u before the answer, %u with traffic; the server had %lu requests and %lu messages, and gave %lu up\n",
	       st->killed, (unsigned long long)(rp_now_ms() - began), st->width,
	       self->seed, st->dead_in[BORN], st->dead_in[ASKED],
	       st->dead_in[TALKING], s->requests, s->messages,
	       s->given_up);
	EXPECT_EQ(0, s->wrong);
	EXPECT_LT(0, s->messages);
	EXPECT_GT(st->killed / 10, s->given_up);
	EXPECT_LT(0, st->dead_in[BORN]);
	EXPECT_LT(0, st->dead_in[TALKING]);

	/* Requests of the last victims may still come, to the old listener. */
	ASSERT_EQ(0, rp_destroy(s->end.fd, RPOST_OBJ_ID, s->listener));
	ASSERT_EQ(0, rp_listener(&s->end, &s->listener));
	/* The server still works. */
	ASSERT_EQ(0, rp_end_init(&client));
	ASSERT_EQ(0, rp_join(&client, &s->end, s->listener, 0));
	EXPECT_EQ(0, msgs_exchange(&client, &s->end));
	rp_end_close(&client);
	rp_end_close(&s->end);
	munmap(s->m, MAX_CONNS * MSG_BYTES);
	EXPECT_EQ(0, rp_wait_counts(counts));
	if (_metadata->passed)
		__atomic_add_fetch(&faults[FAULT_KILL], st->killed,
				   __ATOMIC_RELAXED);
}

TEST_HARNESS_MAIN
