/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program's side of submission rings, for sring.c, sring_shared.c and
 * others.
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

int sr_setup(int fd, uint32_t qp, uint32_t bytes, struct sring *ring);

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

int sr_put(struct sring *ring, const void *from, uint32_t bytes);
int sr_show(struct sring *ring);

static inline int sr_post(struct sring *ring, const struct rp_send *send)
{
	int ret = sr_put(ring, send, send->wr.size);

	return ret ? ret : sr_show(ring);
}

struct rp_send sr_nop(uint64_t wr_id);
bool sr_wait(const uint32_t *word, uint32_t mask, uint32_t want);

static inline bool sr_wait_asleep(const struct sring *ring)
{
	return sr_wait(&ring->hdr->flags, RPOST_SEND_RING_NEED_WAKEUP,
		       RPOST_SEND_RING_NEED_WAKEUP);
}

int sr_expect(struct rp_cq *cq, uint64_t wr_id, uint32_t status);

#endif /* RPOST_SRING_H */
