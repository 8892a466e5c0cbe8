// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests many handles: the table of an open file grows, with one thread and with
 * several, is emptied and filled again, and ends at max_objects.  A failure
 * means that a handle names nothing, a wrong object, or one that is gone.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rpost_test.h"

#define PARAM_MAX_OBJECTS "/sys/module/rdma_post/parameters/max_objects"

#define MANY 1000

static int write_limit(long limit)
{
	FILE *f = fopen(PARAM_MAX_OBJECTS, "w");

	if (!f)
		return -errno;
	fprintf(f, "%ld\n", limit);
	return fclose(f) ? -errno : 0;
}

FIXTURE(handles) {
	int fd, channel;
	long limit;
	uint32_t ids[MANY];
};

FIXTURE_SETUP(handles)
{
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->channel = rp_event_channel(self->fd);
	ASSERT_LE(0, self->channel);
	/* Only root may change the limit. */
	if (!access(PARAM_MAX_OBJECTS, W_OK))
		self->limit = rp_module_number("parameters/max_objects");
}

FIXTURE_TEARDOWN(handles)
{
	if (self->limit)
		EXPECT_EQ(0, write_limit(self->limit));
	close(self->channel);
	close(self->fd);
}

/* Returns 0 if the handle names an id. */
static int find(int fd, uint32_t handle)
{
	struct rpost_query_id query;

	return rp_query_id(fd, handle, &query);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns true if all handles differ, and mmap(2) can take each. */
static bool distinct(const uint32_t *handles, unsigned int n)
{
	uint32_t *sorted = malloc(n * sizeof(*sorted));
	bool good = true;
	unsigned int i;

	memcpy(sorted, handles, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (i = 0; i < n; i++) {
		good &= sorted[i] && sorted[i] <= INT32_MAX;
		good &= !i || sorted[i] != sorted[i - 1];
	}
	free(sorted);
	return good;
}

/*
 * The table grows many times, half of it is emptied and filled again: a
 * handle names its object while that exists, and nothing afterwards.
 */
TEST_F(handles, many)
{
	uint32_t gone[MANY];
	int i, round;

	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, rp_create_id(self->fd, self->channel,
					  &self->ids[i]));
	EXPECT_TRUE(distinct(self->ids, MANY));
	for (round = 0; round < 3; round++) {
		memcpy(gone, self->ids, sizeof(gone));
		for (i = round % 2; i < MANY; i += 2)
			ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_ID,
						self->ids[i]));
		EXPECT_EQ(MANY / 2, rp_num_objects(self->fd));
		for (i = 0; i < MANY; i++)
			EXPECT_EQ(i % 2 == round % 2 ? -ENOENT : 0,
				  find(self->fd, self->ids[i]));
		for (i = round % 2; i < MANY; i += 2)
			ASSERT_EQ(0, rp_create_id(self->fd, self->channel,
						  &self->ids[i]));
		EXPECT_EQ(MANY, rp_num_objects(self->fd));
		EXPECT_TRUE(distinct(self->ids, MANY));
		for (i = 0; i < MANY; i++) {
			EXPECT_EQ(0, find(self->fd, self->ids[i]));
			if (i % 2 == round % 2)
				EXPECT_EQ(-ENOENT, find(self->fd, gone[i]));
		}
	}
}

/* With no other object, a handle is not given out again soon. */
TEST_F(handles, no_handle_twice)
{
	uint32_t handles[4 * MANY];
	int i;

	for (i = 0; i < 4 * MANY; i++) {
		ASSERT_EQ(0, rp_create_id(self->fd, self->channel,
					  &handles[i]));
		ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_ID, handles[i]));
		EXPECT_EQ(-ENOENT, find(self->fd, handles[i]));
	}
	EXPECT_TRUE(distinct(handles, 4 * MANY));
	EXPECT_EQ(0, rp_num_objects(self->fd));
}

#define GROWERS 4

struct grower {
	pthread_t thread;
	int fd, channel, wrong;
	uint32_t ids[MANY / GROWERS];
	const bool *stop;
};

/* Create many ids, and some of them again and again. */
static void *grow(void *arg)
{
	struct grower *g = arg;
	int i;

	for (i = 0; i < MANY / GROWERS; i++) {
		g->wrong |= rp_create_id(g->fd, g->channel, &g->ids[i]);
		if (i % 3)
			continue;
		g->wrong |= rp_destroy(g->fd, RPOST_OBJ_ID, g->ids[i]);
		g->wrong |= rp_create_id(g->fd, g->channel, &g->ids[i]);
		g->wrong |= find(g->fd, g->ids[i]);
	}
	return NULL;
}

/* Look up all possible handles while other threads create some. */
static void *look(void *arg)
{
	struct grower *g = arg;
	uint32_t i;
	int ret;

	while (!__atomic_load_n(g->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 2 * MANY; i++) {
			ret = find(g->fd, i);
			g->wrong |= ret && ret != -ENOENT;
		}
		g->wrong |= rp_destroy(g->fd, RPOST_OBJ_PD, i) != -ENOENT;
	}
	return NULL;
}

/* Threads make the table grow while others look handles up. */
TEST_F(handles, grows_meanwhile)
{
	struct grower growers[GROWERS], lookers[2];
	bool stop = false;
	int i;

	for (i = 0; i < 2; i++) {
		lookers[i] = (struct grower) { .fd = self->fd, .stop = &stop };
		ASSERT_EQ(0, pthread_create(&lookers[i].thread, NULL, look,
					    &lookers[i]));
	}
	for (i = 0; i < GROWERS; i++) {
		growers[i].fd = self->fd;
		growers[i].channel = self->channel;
		growers[i].wrong = 0;
		ASSERT_EQ(0, pthread_create(&growers[i].thread, NULL, grow,
					    &growers[i]));
	}
	for (i = 0; i < GROWERS; i++) {
		ASSERT_EQ(0, pthread_join(growers[i].thread, NULL));
		EXPECT_EQ(0, growers[i].wrong);
		memcpy(self->ids + i * (MANY / GROWERS), growers[i].ids,
		       sizeof(growers[i].ids));
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(lookers[i].thread, NULL));
		EXPECT_EQ(0, lookers[i].wrong);
	}
	EXPECT_EQ(MANY, rp_num_objects(self->fd));
	EXPECT_TRUE(distinct(self->ids, MANY));
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_ID, self->ids[i]));
	EXPECT_EQ(0, rp_num_objects(self->fd));
}

/* Reach a limit exactly, then change it; the table itself has room. */
TEST_F(handles, limit)
{
	int i, fd = self->fd, channel = self->channel;
	uint32_t *ids = self->ids, id;

	if (!self->limit)
		SKIP(return, "needs root");
	ASSERT_EQ(0, write_limit(200));
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, rp_create_id(fd, channel, &ids[i]));
	EXPECT_EQ(-EMFILE, rp_create_id(fd, channel, &id));
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, rp_destroy(fd, RPOST_OBJ_ID, ids[i]));
		ASSERT_EQ(0, rp_create_id(fd, channel, &ids[i]));
		ASSERT_EQ(-EMFILE, rp_create_id(fd, channel, &id));
	}
	EXPECT_EQ(200, rp_num_objects(fd));
	ASSERT_EQ(0, write_limit(300));
	for (; i < 300; i++)
		ASSERT_EQ(0, rp_create_id(fd, channel, &ids[i]));
	/* A lower limit keeps existing objects, and allows no new ones. */
	ASSERT_EQ(0, write_limit(10));
	EXPECT_EQ(-EMFILE, rp_create_id(fd, channel, &id));
	for (i = 0; i < 300; i++)
		EXPECT_EQ(0, rp_destroy(fd, RPOST_OBJ_ID, ids[i]));
	EXPECT_EQ(0, rp_num_objects(fd));
	EXPECT_EQ(0, rp_create_id(fd, channel, &id));
}

TEST_HARNESS_MAIN
