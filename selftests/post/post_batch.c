// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests long and invalid blocks of work requests.  A failure means that a post does not
 * return exactly how many are posted, or that an invalid one is.
 */
#include <kselftest_harness.h>

#define RP_DEPTH	64
#include "post_pair.h"

RP_USE_DEPTH()

#define BUF	4096

BLOCKS_FIXTURE(BUF)

static struct rpost_recv_wr good_recv(uint64_t wr_id)
{
	return (struct rpost_recv_wr) {
		.wr_id = wr_id, .size = sizeof(struct rpost_recv_wr),
	};
}

/* Expect an error of a post of @bytes, and a queue pair that still works. */
static void refused(struct __test_metadata *_metadata,
		    FIXTURE_DATA(blocks) *self, unsigned long nr,
		    const void *block, uint32_t bytes, int want)
{
	struct rp_send send = pair_write(&self->p, 55);

	EXPECT_EQ(want, rp_post_once(self->p.c.fd, nr, self->p.c.qp, block, bytes))
		TH_LOG("%u bytes", bytes);
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(55, self->wc.wr_id);
}

/* The call returns how many were posted, and the error only of the first of all. */
TEST_F(blocks, return_how_many)
{
	struct rp_send sends[20];
	struct rpost_recv_wr recvs[20];
	struct rp_end *c = &self->p.c;
	int bad, i;

	for (bad = 0; bad < 20; bad++) {
		for (i = 0; i < 20; i++) {
			sends[i] = pair_write(&self->p, i);
			recvs[i] = good_recv(i);
		}
		EXPECT_EQ(20, rp_post_once(c->fd, RPOST_IOC_POST_SEND, c->qp, sends, sizeof(sends)));
		sends[bad].wr.send_flags = UINT32_MAX;
		EXPECT_EQ(bad ? : -EOPNOTSUPP, rp_post_once(c->fd, RPOST_IOC_POST_SEND, c->qp,
							    sends, sizeof(sends)));
		for (i = 0; i < 20 + bad; i++)
			ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		EXPECT_EQ(0, rp_poll_cq(&self->p.c.cq, &self->wc));
	}
	recvs[5].num_sge = UINT32_MAX;
	EXPECT_EQ(5, rp_post_once(c->fd, RPOST_IOC_POST_RECV, c->qp, recvs, sizeof(recvs)));
	EXPECT_EQ(-EINVAL, rp_post_once(c->fd, RPOST_IOC_POST_RECV, c->qp, &recvs[5],
					sizeof(recvs) - 5 * sizeof(recvs[0])));
}

TEST_F(blocks, do_not_add_up)
{
	struct rp_send block[3];
	struct rpost_recv_wr recvs[3];
	const uint32_t bytes[] = { 0, 7, 8, 63, sizeof(block[0]) - 1,
				 sizeof(block[0]) + 8, sizeof(block) - 8,
				 sizeof(block) - 1 };
	const uint32_t sizes[] = { 0, 1, 8, 63, 64 + 15, 64 + 17, 64 + 24, 4096,
				   UINT32_MAX, UINT32_MAX - 7, 0x80000000 };
	unsigned int i, k;

	for (k = 0; k < 3; k++) {
		block[k] = pair_write(&self->p, k);
		recvs[k] = good_recv(k);
	}
	for (i = 0; i < ARRAY_SIZE(bytes); i++)
		refused(_metadata, self, RPOST_IOC_POST_SEND, block, bytes[i], -EINVAL);
	/* An invalid size in the last request, where it moves no later one. */
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		block[2].wr.size = sizes[i];
		refused(_metadata, self, RPOST_IOC_POST_SEND, block, sizeof(block), -EINVAL);
		recvs[2].size = sizes[i];
		refused(_metadata, self, RPOST_IOC_POST_RECV, recvs, sizeof(recvs), -EINVAL);
	}
	recvs[2] = good_recv(2);
	for (i = 1; i < sizeof(recvs[0]); i++)
		refused(_metadata, self, RPOST_IOC_POST_RECV, recvs, sizeof(recvs) - i, -EINVAL);
}

TEST_F(blocks, limits_of_the_block)
{
	struct rpost_query query = { .size = sizeof(query) };
	char *block;

	ASSERT_EQ(0, rp_ioctl(self->p.c.fd, RPOST_IOC_QUERY, &query));
	block = calloc(1, query.max_wr_bytes + 8);
	ASSERT_NE(NULL, block);
	refused(_metadata, self, RPOST_IOC_POST_SEND, block, query.max_wr_bytes + 8, -E2BIG);

	/* The largest block of receives: RP_DEPTH of them are posted. */
	struct rpost_recv_wr *recvs = (void *)block;
	uint32_t n = query.max_wr_bytes / sizeof(*recvs), i, posted;

	for (i = 0; i < n; i++)
		recvs[i] = good_recv(i);
	EXPECT_EQ(-ENOMEM, rp_post(self->p.c.fd, RPOST_IOC_POST_RECV, self->p.c.qp,
				   recvs, query.max_wr_bytes, n, &posted));
	EXPECT_EQ(RP_DEPTH, posted);
	free(block);
}

/* The work requests are not all in mapped memory: none is posted. */
TEST_F(blocks, bad_pointer)
{
	const uint32_t sizes[] = { 40, 80, 96, 4096, 40000, 65536 };
	size_t page = getpagesize();
	char *hole = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rpost_post *cmd = (void *)(hole + page - 32);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, (void *)hole);
	ASSERT_EQ(0, munmap(hole + page, page));
	*(struct rpost_recv_wr *)(cmd + 1) = good_recv(1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		*cmd = (struct rpost_post) { .size = sizes[i], .qp = self->p.c.qp };
		EXPECT_EQ(-EFAULT, rp_ioctl(self->p.c.fd, RPOST_IOC_POST_SEND, cmd));
		EXPECT_EQ(-EFAULT, rp_ioctl(self->p.c.fd, RPOST_IOC_POST_RECV, cmd));
	}
	/* A size that ends with the work request posts it. */
	cmd->size = 32;
	EXPECT_EQ(1, rp_ioctl(self->p.c.fd, RPOST_IOC_POST_RECV, cmd));
	munmap(hole, page);
}

/* Blocks of many batches, with requests of different kinds and lengths. */
TEST_F(blocks, long_and_mixed)
{
	struct {
		struct rp_send write;
		struct {
			struct rpost_send_wr wr;
			char data[24];
		} inl;
		struct rpost_send_wr nothing;
	} block[RP_DEPTH / 3];
	unsigned int i, n = ARRAY_SIZE(block);
	uint32_t posted;

	memset(block, 0, sizeof(block));
	for (i = 0; i < n; i++) {
		block[i].write = pair_write(&self->p, 3 * i);
		block[i].inl.wr = pair_write(&self->p, 3 * i + 1).wr;
		block[i].inl.wr.send_flags |= RPOST_SEND_INLINE;
		block[i].inl.wr.num_sge = 0;
		block[i].inl.wr.inline_len = 17;
		block[i].inl.wr.size = sizeof(block[i].inl);
		block[i].inl.wr.remote_addr = self->p.smr.addr + 1024 + i * 32;
		memset(block[i].inl.data, 'A' + i, 17);
		block[i].nothing = pair_write(&self->p, 3 * i + 2).wr;
		block[i].nothing.num_sge = 0;
		block[i].nothing.size = sizeof(block[i].nothing);
	}
	ASSERT_EQ(0, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp, block,
			     sizeof(block), 3 * n, &posted));
	EXPECT_EQ(3 * n, posted);
	for (i = 0; i < 3 * n; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
		EXPECT_EQ(i, self->wc.wr_id);
	}
	for (i = 0; i < n; i++) {
		EXPECT_EQ((char)('A' + i), self->p.sbuf[1024 + i * 32]);
		EXPECT_EQ((char)('A' + i), self->p.sbuf[1024 + i * 32 + 16]);
		EXPECT_EQ(0, self->p.sbuf[1024 + i * 32 + 17]);
	}
}

/* Request k is invalid: only the k requests before it are posted. */
TEST_F(blocks, the_kth_is_bad)
{
	const uint32_t ks[] = { 0, 1, 2, 15, 16, 17, 31, 32, 47, 49 };
	struct rp_send block[50];
	struct rpost_recv_wr recvs[50];
	uint32_t i, k, posted;

	for (k = 0; k < ARRAY_SIZE(ks); k++) {
		for (i = 0; i < 50; i++)
			block[i] = pair_write(&self->p, i);
		block[ks[k]].wr.opcode = 7;
		posted = 99;
		EXPECT_EQ(-EOPNOTSUPP,
			  rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp,
				  block, sizeof(block), 50, &posted));
		ASSERT_EQ(ks[k], posted);
		for (i = 0; i < ks[k]; i++) {
			ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
			ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			EXPECT_EQ(i, self->wc.wr_id);
		}
	}
	EXPECT_NOTHING(&self->p.c);

	/* A receive whose num_sge is 1 but whose size has no entry. */
	for (i = 0; i < 50; i++)
		recvs[i] = good_recv(i);
	recvs[20].num_sge = 1;
	EXPECT_EQ(-EINVAL, rp_post(self->p.c.fd, RPOST_IOC_POST_RECV, self->p.c.qp,
				   recvs, sizeof(recvs), 50, &posted));
	EXPECT_EQ(20, posted);
	ASSERT_EQ(0, rp_move(&self->p.c, RPOST_QPS_ERR));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
		EXPECT_EQ(i, self->wc.wr_id);
	}
	EXPECT_NOTHING_FLUSHED(&self->p.c);
}

/* --------------------------------------- values of a work request */

static void refused_wr(struct __test_metadata *_metadata,
		       FIXTURE_DATA(blocks) *self, struct rp_send send,
		       int want)
{
	refused(_metadata, self, RPOST_IOC_POST_SEND, &send, send.wr.size, want);
}

TEST_F(blocks, opcodes_and_flags)
{
	const uint32_t opcodes[] = { 7, 8, 10, 11, 14, 0x20, 0xf0, 0x100,
				     0x80000000, UINT32_MAX };
	struct rp_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		send = pair_write(&self->p, 1);
		send.wr.opcode = opcodes[i];
		refused_wr(_metadata, self, send, -EOPNOTSUPP);
	}
	for (i = 4; i < 32; i++) {
		send = pair_write(&self->p, 1);
		send.wr.send_flags |= 1u << i;
		refused_wr(_metadata, self, send, -EOPNOTSUPP);
	}
	send = pair_write(&self->p, 1);
	send.wr.reserved = 1;
	refused_wr(_metadata, self, send, -EOPNOTSUPP);
}

TEST_F(blocks, atomics_are_8_bytes)
{
	const uint32_t ops[] = { RPOST_WR_ATOMIC_CMP_AND_SWP,
				 RPOST_WR_ATOMIC_FETCH_AND_ADD };
	const uint32_t lengths[] = { 0, 1, 4, 7, 9, 16, 4096 };
	struct {
		struct rp_send send;
		struct rpost_sge second;
	} two;
	unsigned int i, j;

	for (i = 0; i < 2; i++) {
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			two.send = pair_write(&self->p, 1);
			two.send.wr.opcode = ops[i];
			two.send.sge.length = lengths[j];
			refused_wr(_metadata, self, two.send, -EINVAL);
		}
		for (j = 1; j < 8; j++) {
			two.send = pair_write(&self->p, 1);
			two.send.wr.opcode = ops[i];
			two.send.wr.remote_addr += j;
			refused_wr(_metadata, self, two.send, -EINVAL);
		}
		/* Atomic operations need exactly one entry. */
		two.send = pair_write(&self->p, 1);
		two.send.wr.opcode = ops[i];
		two.send.wr.num_sge = 0;
		two.send.wr.size = sizeof(two.send.wr);
		refused_wr(_metadata, self, two.send, -EINVAL);
		two.send = pair_write(&self->p, 1);
		two.send.wr.opcode = ops[i];
		two.send.sge.length = 4;
		two.second = two.send.sge;
		two.send.wr.num_sge = 2;
		two.send.wr.size = sizeof(two);
		refused(_metadata, self, RPOST_IOC_POST_SEND, &two, sizeof(two), -EINVAL);
		/* It cannot be inline either. */
		two.send = pair_write(&self->p, 1);
		two.send.wr.opcode = ops[i];
		two.send.wr.send_flags |= RPOST_SEND_INLINE;
		two.send.wr.num_sge = 0;
		two.send.wr.inline_len = 8;
		two.send.wr.size = sizeof(two.send.wr) + 8;
		refused_wr(_metadata, self, two.send, -EINVAL);
	}
}

/* More entries than the queue pair was created with. */
TEST_F(blocks, too_many_entries)
{
	struct rpost_query_device dev;
	struct {
		struct rpost_send_wr wr;
		struct rpost_sge sges[RP_SGE + 2];
	} send = { 0 };
	struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sges[RP_SGE + 2];
	} recv = { 0 };
	uint32_t n;

	ASSERT_EQ(0, rp_query_device(self->p.c.fd, self->p.c.device, &dev));
	for (n = RP_SGE + 1; n <= RP_SGE + 2; n++) {
		send.wr = pair_write(&self->p, 1).wr;
		send.wr.num_sge = n;
		send.wr.size = sizeof(send.wr) + n * sizeof(*send.sges);
		refused(_metadata, self, RPOST_IOC_POST_SEND, &send, send.wr.size, -EINVAL);
		send.wr.opcode = RPOST_WR_RDMA_READ;
		refused(_metadata, self, RPOST_IOC_POST_SEND, &send, send.wr.size, -EINVAL);
		recv.wr.num_sge = n;
		recv.wr.size = sizeof(recv.wr) + n * sizeof(*recv.sges);
		refused(_metadata, self, RPOST_IOC_POST_RECV, &recv, recv.wr.size, -EINVAL);
	}
	/* A count of entries whose size wraps around in 32 bits. */
	send.wr = pair_write(&self->p, 1).wr;
	send.wr.num_sge = 0x10000001;
	send.wr.size = sizeof(send.wr) + sizeof(*send.sges);
	refused(_metadata, self, RPOST_IOC_POST_SEND, &send, send.wr.size, -EINVAL);
	if (dev.max_sge_rd >= RP_SGE)
		return;
	send.wr = pair_write(&self->p, 1).wr;
	send.wr.opcode = RPOST_WR_RDMA_READ;
	send.wr.num_sge = dev.max_sge_rd + 1;
	send.wr.size = sizeof(send.wr) + send.wr.num_sge * sizeof(*send.sges);
	refused(_metadata, self, RPOST_IOC_POST_SEND, &send, send.wr.size, -EINVAL);
}

/* Entries that leave their region and whose total length wraps around. */
TEST_F(blocks, sum_that_wraps)
{
	struct {
		struct rpost_send_wr wr;
		struct rpost_sge sges[RP_SGE];
	} send = { .wr = pair_write(&self->p, 1).wr };
	int i;

	send.wr.num_sge = RP_SGE;
	send.wr.size = sizeof(send);
	memset(self->p.sbuf, 's', BUF);
	for (i = 0; i < RP_SGE; i++)
		send.sges[i] = (struct rpost_sge) {
			(uintptr_t)self->p.cbuf, 0x40000000, self->p.cmr.lkey,
		};
	ASSERT_EQ(0, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp, &send,
			     sizeof(send), 1, NULL));
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status);
	for (i = 0; i < BUF; i++)
		ASSERT_EQ('s', self->p.sbuf[i]);
}

TEST_F(blocks, inline_errors)
{
	struct {
		struct rp_send send;
		char more[64];
	} b = { 0 };
	const uint32_t wrong_ops[] = { RPOST_WR_RDMA_READ,
				       RPOST_WR_ATOMIC_FETCH_AND_ADD };
	unsigned int i;

	/* One byte more than the queue pair was created with. */
	b.send = pair_write(&self->p, 1);
	b.send.wr.send_flags |= RPOST_SEND_INLINE;
	b.send.wr.num_sge = 0;
	b.send.wr.inline_len = RP_INLINE + 1;
	b.send.wr.size = sizeof(b.send.wr) + RP_INLINE + 8;
	refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	b.send.wr.inline_len = UINT32_MAX;
	refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	/* Lengths that differ from the data behind the work request. */
	b.send.wr.inline_len = 16;
	b.send.wr.size = sizeof(b.send.wr) + 8;
	refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	b.send.wr.inline_len = 7;
	b.send.wr.size = sizeof(b.send.wr) + 16;
	refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	/* Inline data together with an entry, then without the flag. */
	b.send.wr.inline_len = 16;
	b.send.wr.num_sge = 1;
	refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	b.send.wr.num_sge = 0;
	b.send.wr.send_flags &= ~RPOST_SEND_INLINE;
	refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	for (i = 0; i < ARRAY_SIZE(wrong_ops); i++) {
		b.send.wr.send_flags |= RPOST_SEND_INLINE;
		b.send.wr.opcode = wrong_ops[i];
		b.send.wr.inline_len = 8;
		b.send.wr.size = sizeof(b.send.wr) + 8;
		refused(_metadata, self, RPOST_IOC_POST_SEND, &b, b.send.wr.size, -EINVAL);
	}
}

TEST_HARNESS_MAIN
