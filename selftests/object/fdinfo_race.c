// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads read /proc/PID/fdinfo of open files while objects of these come and
 * go, the files are closed, their programs are killed, and their device is
 * removed.  A failure is a crash, a hang, an object that is left, or a counter
 * that goes back.
 *
 * Removal needs root, RPOST_TEST_REMOVE and RPOST_TEST_ADD; see removal.c.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "fdinfo.h"

#define READERS		2
#define ROUNDS		20
#define KILLS		20
#define WATCHED		200	/* descriptor that the readers read */

struct reader {
	pthread_t thread;
	pid_t pid;
	int fd;
	bool stop;
	unsigned long reads;
	bool went_back;
};

/* Read until told to stop; a closed file is not an error. */
static void *read_on(void *arg)
{
	struct reader *r = arg;
	long long file = 0, last = 0, now;
	char *text = malloc(FDINFO_BYTES);

	while (text && !__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		if (fdinfo_read_of(r->pid, r->fd, text) <= 0)
			continue;
		now = fdinfo_number(text, "file");
		if (now < 0)
			continue;
		if (now != file)
			last = 0;
		file = now;
		now = fdinfo_number(text, "total-commands");
		if (now < last)
			r->went_back = true;
		last = now;
		__atomic_add_fetch(&r->reads, 1, __ATOMIC_RELAXED);
	}
	free(text);
	return NULL;
}

static int start_readers(struct reader *readers, pid_t pid, int fd)
{
	int i;

	for (i = 0; i < READERS; i++) {
		readers[i] = (struct reader) { .pid = pid, .fd = fd };
		RP_TRY(-pthread_create(&readers[i].thread, NULL, read_on,
				       &readers[i]));
	}
	return 0;
}

/* Return the number of reads, or -1 if a counter went back. */
static long stop_readers(struct reader *readers)
{
	long reads = 0;
	int i;

	for (i = 0; i < READERS; i++) {
		__atomic_store_n(&readers[i].stop, true, __ATOMIC_RELAXED);
		pthread_join(readers[i].thread, NULL);
		reads = readers[i].went_back || reads < 0 ? -1 :
			reads + (long)readers[i].reads;
	}
	return reads;
}

static unsigned long reads_of(struct reader *readers)
{
	return __atomic_load_n(&readers[0].reads, __ATOMIC_RELAXED);
}

/* Connect, send, and destroy one by one, on two open files. */
static int live(struct rp_end *client, struct rp_end *server)
{
	struct rpost_reg_mr mr;
	struct rpost_wc wc;
	struct rp_send send;
	char *mem = rp_pages(4096);
	uint32_t listener;

	RP_TRY(rp_end_init(client));
	RP_TRY(dup3(client->fd, WATCHED, O_CLOEXEC) == WATCHED ? 0 : -errno);
	RP_TRY(rp_end_init(server));
	RP_TRY(rp_listener(server, &listener));
	RP_TRY(rp_join(client, server, listener, 0));
	RP_TRY(rp_reg_mr(client->fd, client->pd, mem, 64, 0, &mr));
	RP_TRY(rp_post_recv(server, 1, NULL, 0, 0));
	send = rp_send(RPOST_WR_SEND, 1, mem, 0, mr.lkey);
	RP_TRY(rp_post_send(client, &send));
	RP_TRY(rp_wait_cq(&client->cq, &wc) - 1);
	RP_TRY(rp_destroy(client->fd, RPOST_OBJ_MR, mr.handle));
	RP_TRY(rp_leave(client));
	munmap(mem, 4096);
	return 0;
}

TEST(objects_come_and_go)
{
	long refcnt = rp_module_number("refcnt");
	struct reader readers[READERS];
	struct rp_end client, server;
	uint64_t since = rp_now_ms();
	long reads;
	int i;

	ASSERT_EQ(0, start_readers(readers, getpid(), WATCHED));
	for (i = 0; i < ROUNDS || (reads_of(readers) < 100 &&
				   rp_now_ms() - since < TEST_CHANCE_MS); i++) {
		ASSERT_EQ(0, live(&client, &server));
		rp_end_close(&client);
		rp_end_close(&server);
		/* This is the last close, or a reader's. */
		close(WATCHED);
	}
	reads = stop_readers(readers);
	EXPECT_LE(0, reads);
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
	RP_SKIP_UNMET(reads >= 100, "%ld reads", reads);
}

/* The last reference may be the reader's, which then ends all objects. */
TEST(killed)
{
	long refcnt = rp_module_number("refcnt");
	struct reader readers[READERS];
	struct rp_end client, server;
	int i, ready[2];
	pid_t pid;
	unsigned char c;

	for (i = 0; i < KILLS; i++) {
		ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			close(ready[0]);
			CHILD_CHECK(!rp_connect_pair(&client, &server, 0));
			c = client.fd;
			CHILD_CHECK(write(ready[1], &c, 1) == 1);
			pause();
			_exit(0);
		}
		close(ready[1]);
		ASSERT_EQ(1, read(ready[0], &c, 1));
		ASSERT_EQ(0, start_readers(readers, pid, c));
		while (!reads_of(readers))
			usleep(100);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		EXPECT_LT(0, stop_readers(readers));
		close(ready[0]);
	}
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
}

TEST(removal)
{
	long refcnt = rp_module_number("refcnt");
	struct reader readers[READERS];
	struct rp_end client, server;
	unsigned long reads;
	int i;

	RP_NEED_REMOVAL();
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rp_connect_pair(&client, &server, 0));
		ASSERT_EQ(0, start_readers(readers, getpid(), client.fd));
		while (!reads_of(readers))
			usleep(100);
		EXPECT_EQ(0, rp_remove_device());
		/* Objects stay, to be destroyed by the program. */
		reads = reads_of(readers);
		while (reads_of(readers) < reads + 2)
			usleep(100);
		EXPECT_EQ(1, fdinfo_get(client.fd, "objects-qp"));
		EXPECT_LT(0, stop_readers(readers));
		rp_end_close(&client);
		rp_end_close(&server);
		ASSERT_EQ(0, rp_add_device());
	}
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
}

TEST_HARNESS_MAIN
