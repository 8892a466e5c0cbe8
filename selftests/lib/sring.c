// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program's side of a submission ring.
 */
#define _GNU_SOURCE
#include "sring.h"

int sr_setup(int fd, uint32_t qp, uint32_t bytes, struct sring *ring)
{
	int ret;

	*ring = (struct sring) {
		.fd = fd,
		.cmd = { .size = sizeof(ring->cmd), .qp = qp, .bytes = bytes },
	};
	ret = rp_ioctl(fd, RPOST_IOC_SETUP_SEND_RING, &ring->cmd);
	if (ret)
		return ret;
	ring->hdr = mmap(NULL, ring->cmd.mmap_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, ring->cmd.mmap_offset);
	if (ring->hdr == MAP_FAILED)
		return -errno;
	ring->data = (char *)ring->hdr + ring->cmd.data_offset;
	return 0;
}

/* Write bytes at the tail without publishing them. */
int sr_put(struct sring *ring, const void *from, uint32_t bytes)
{
	uint32_t i;

	if (ring->cmd.bytes - (ring->tail - sr_head(ring)) < bytes)
		return -ENOMEM;
	for (i = 0; i < bytes; i++)
		ring->data[(ring->tail + i) & (ring->cmd.bytes - 1)] =
			((const char *)from)[i];
	ring->tail += bytes;
	return 0;
}

int sr_show(struct sring *ring)
{
	__atomic_store_n(&ring->hdr->tail, ring->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!(sr_flags(ring) & RPOST_SEND_RING_NEED_WAKEUP))
		return 0;
	ring->entered++;
	return sr_enter(ring->fd, ring->cmd.qp);
}

/* Return an RDMA write of 0 bytes. */
struct rp_send sr_nop(uint64_t wr_id)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, wr_id, NULL, 0, 0);

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	return send;
}

/* Wait until @word & @mask is @want; false after the time limit. */
bool sr_wait(const uint32_t *word, uint32_t mask, uint32_t want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while ((__atomic_load_n(word, __ATOMIC_ACQUIRE) & mask) != want) {
		if (rp_now_ms() >= end)
			return false;
		usleep(100);
	}
	return true;
}

/* Expect one completion with this wr_id and status. */
int sr_expect(struct rp_cq *cq, uint64_t wr_id, uint32_t status)
{
	struct rpost_wc wc;

	if (rp_wait_cq(cq, &wc) != 1)
		return -ETIME;
	if (wc.wr_id != wr_id || wc.status != status) {
		if (!rp_mute)
			fprintf(stderr, "# completion %llu status %u, not %llu %u\n",
				(unsigned long long)wc.wr_id, wc.status,
				(unsigned long long)wr_id, status);
		return -EPROTO;
	}
	return 0;
}
