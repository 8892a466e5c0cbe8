// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests posts from threads: one thread changes a block while the kernel reads
 * it, and several post to one queue pair, more at once than the module keeps
 * memory for.  A failure means that the kernel uses a value that it has not
 * checked, or posts a work request twice.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#define RP_DEPTH	64
#include "post_pair.h"

RP_USE_DEPTH()

#define BUF	4096

BLOCKS_FIXTURE(BUF)

/* --------------------- a block that changes while the kernel reads it */

struct changer {
	struct rp_send *block;
	bool stop;
};

static void *change(void *arg)
{
	struct changer *c = arg;
	volatile struct rpost_send_wr *wr = &c->block[1].wr;
	volatile struct rpost_sge *sge = &c->block[1].sge;
	uint32_t size = wr->size, lkey = sge->lkey, x = 1;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		x = x * 1664525 + 1013904223;
		wr->size = x & 0x1000 ? size : x;
		wr->num_sge = x & 0x6000 ? 1 : x;
		wr->inline_len = x & 0x18000 ? 0 : x;
		wr->opcode = x >> 28;
		sge->lkey = x & 0x20000 ? lkey : 0;
		sge->length = x & 0xc0000 ? 8 : x;
	}
	return NULL;
}

TEST_F(blocks, changed_meanwhile)
{
	uint64_t end = rp_now_ms() + 400;
	struct {
		struct rpost_post cmd;
		struct rp_send block[3];
	} post = { .cmd = { .size = sizeof(post), .qp = self->p.c.qp } };
	struct changer c = { .block = post.block };
	unsigned int i, refusals = 0;
	pthread_t thread;
	int ret;

	memset(self->p.sbuf, 's', BUF);
	for (i = 0; i < 3; i++)
		post.block[i] = pair_write(&self->p, i);
	ASSERT_EQ(0, pthread_create(&thread, NULL, change, &c));
	do {
		ret = rp_ioctl(self->p.c.fd, RPOST_IOC_POST_SEND, &post);
		ASSERT_TRUE((ret >= 1 && ret <= 3) || ret == -EINVAL || ret == -ENOMEM)
			TH_LOG("%d", ret);
		if (ret != 3)
			refusals++;
		while (rp_poll_cq(&self->p.c.cq, &self->wc) == 1)
			;
	} while (rp_now_ms() < end ||
		 (!refusals && rp_now_ms() < end + TEST_CHANCE_MS));
	c.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	/* Only the places of valid writes may have changed. */
	for (i = 3 * 8; i < BUF; i++)
		ASSERT_EQ('s', self->p.sbuf[i]);
	RP_SKIP_UNMET(refusals, "no post was refused");
}

/* ------------------- more posts at once than the module keeps memory for */

#define POSTERS		4
#define POSTS		300

struct poster {
	const struct post_pair *pair;
	pthread_t thread;
	unsigned int number;
	uint32_t seen;		/* completions of this poster so far */
	int ret;
};

/* Each poster's blocks have another length, around the kept size. */
static void *post_batches(void *arg)
{
	struct poster *p = arg;
	const struct post_pair *pair = p->pair;
	const uint32_t max = 2 + p->number * 9;
	uint32_t i, n, taken, seq = 0;
	struct rp_send block[2 + 3 * 9];

	while (seq < POSTS && !p->ret) {
		n = POSTS - seq < max ? POSTS - seq : max;
		for (i = 0; i < n; i++) {
			uint32_t cell = p->number * 64 + (seq + i) % 64;

			block[i] = pair_write(pair, (uint64_t)p->number << 32 |
					      (seq + i));
			block[i].sge.addr = (uintptr_t)pair->cbuf + cell * 8;
			block[i].wr.remote_addr = pair->smr.addr + cell * 8;
		}
		p->ret = rp_post(pair->c.fd, RPOST_IOC_POST_SEND, pair->c.qp,
				 block, n * sizeof(block[0]), n, &taken);
		seq += taken;
		/* Try again once the queue has room. */
		if (p->ret == -ENOMEM) {
			p->ret = 0;
			sched_yield();
		} else if (!p->ret && taken != n) {
			p->ret = -EIO;
		}
	}
	return NULL;
}

TEST_F(blocks, many_at_once)
{
	struct poster p[POSTERS] = {};
	uint64_t *cells = (uint64_t *)self->p.cbuf;
	unsigned int i, number;

	for (i = 0; i < POSTERS * 64; i++)
		cells[i] = 0x5a5a000000000000 + i;
	for (i = 0; i < POSTERS; i++) {
		p[i].pair = &self->p;
		p[i].number = i;
		ASSERT_EQ(0, pthread_create(&p[i].thread, NULL, post_batches,
					    &p[i]));
	}
	/* Each work request is posted once and unchanged. */
	for (i = 0; i < POSTERS * POSTS; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
		number = self->wc.wr_id >> 32;
		ASSERT_GT(POSTERS, number);
		ASSERT_EQ(p[number].seen, (uint32_t)self->wc.wr_id);
		p[number].seen++;
	}
	for (i = 0; i < POSTERS; i++) {
		ASSERT_EQ(0, pthread_join(p[i].thread, NULL));
		EXPECT_EQ(0, p[i].ret);
	}
	EXPECT_EQ(0, memcmp(self->p.cbuf, self->p.sbuf, POSTERS * 64 * 8));
}

TEST_HARNESS_MAIN
