/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Send rings, from the program's side: for sring.c, sring_shared.c and others.
 */
#ifndef RPOST_SRING_H
#define RPOST_SRING_H

#include "rpost_own.h"

struct sring {
	int fd;
	struct rpost_setup_send_ring cmd;
	struct rpost_send_ring *hdr;
	char *data;
	uint32_t tail;
	unsigned int entered;	/* calls of ENTER_SEND_RING */
};

static inline int sr_setup(int fd, uint32_t qp, uint32_t bytes,
			   struct sring *ring)
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

static inline void sr_unmap(struct sring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->cmd.mmap_size);
	ring->hdr = NULL;
}

static inline int sr_enter(int fd, uint32_t qp)
{
	struct rpost_enter_send_ring cmd = { .size = sizeof(cmd), .qp = qp };

	return rp_ioctl(fd, RPOST_IOC_ENTER_SEND_RING, &cmd);
}

static inline uint32_t sr_head(const struct sring *ring)
{
	return __atomic_load_n(&ring->hdr->head, __ATOMIC_ACQUIRE);
}

static inline uint32_t sr_flags(const struct sring *ring)
{
	return __atomic_load_n(&ring->hdr->flags, __ATOMIC_ACQUIRE);
}

static inline uint32_t sr_error(const struct sring *ring)
{
	return __atomic_load_n(&ring->hdr->error, __ATOMIC_ACQUIRE);
}

/* Put bytes behind the tail and show nothing yet. */
static inline int sr_put(struct sring *ring, const void *from, uint32_t bytes)
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

static inline int sr_show(struct sring *ring)
{
	__atomic_store_n(&ring->hdr->tail, ring->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!(sr_flags(ring) & RPOST_SEND_RING_NEED_WAKEUP))
		return 0;
	ring->entered++;
	return sr_enter(ring->fd, ring->cmd.qp);
}

static inline int sr_post(struct sring *ring, const struct rp_send *send)
{
	int ret = sr_put(ring, send, send->wr.size);

	return ret ? ret : sr_show(ring);
}

/* An RDMA write of no bytes. */
static inline struct rp_send sr_nop(uint64_t wr_id)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, wr_id, NULL, 0, 0);

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	return send;
}

/* Wait until a word has, or has not, some bits: false after the time limit. */
static inline bool sr_wait(const uint32_t *word, uint32_t mask, uint32_t want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while ((__atomic_load_n(word, __ATOMIC_ACQUIRE) & mask) != want) {
		if (rp_now_ms() >= end)
			return false;
		usleep(100);
	}
	return true;
}

static inline bool sr_wait_asleep(const struct sring *ring)
{
	return sr_wait(&ring->hdr->flags, RPOST_SEND_RING_NEED_WAKEUP,
		       RPOST_SEND_RING_NEED_WAKEUP);
}

/* One completion, with this id and status. */
static inline int sr_expect(struct rp_cq *cq, uint64_t wr_id, uint32_t status)
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

#endif /* RPOST_SRING_H */
