// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See mr_cache.h. */
#define _GNU_SOURCE
#include <sys/swap.h>

#include "mr_cache.h"

#define SWAP_DEVICE	"/dev/ram1"

int cache_pair_init(struct cache_pair *p, size_t pages)
{
	*p = (struct cache_pair) { .memfd = -1, .bytes = pages * getpagesize() };
	p->mem = rp_pages(p->bytes);
	p->far = rp_pages(p->bytes);
	if (!p->mem || !p->far)
		return -ENOMEM;
	memset(p->mem, 1, p->bytes);
	RP_TRY(rp_connect_pair(&p->c, &p->s, 0));
	/* The server's memory is not counted: a child registers it, too. */
	p->pinned = rp_pinned();
	return 0;
}

void cache_pair_close(struct cache_pair *p)
{
	rp_end_close(&p->c);
	rp_end_close(&p->s);
	if (p->memfd >= 0)
		close(p->memfd);
}

int cache_reg_flags(struct cache_pair *p, struct rpost_reg_mr *mr, uint32_t flags)
{
	*mr = rp_mr(p->c.pd, p->mem, p->bytes, RPOST_ACCESS_LOCAL_WRITE);
	mr->flags = flags;
	return rp_ioctl(p->c.fd, RPOST_IOC_REG_MR, mr);
}

int cache_warm(struct cache_pair *p)
{
	int kept = cache_kept(p);
	struct rpost_reg_mr mr;
	int n;

	for (n = 0; n < 3 && cache_kept(p) == kept; n++) {
		RP_TRY(cache_reg(p, &mr));
		RP_TRY(cache_dereg(p, &mr));
	}
	return cache_kept(p) ? 0 : -ENOENT;
}

struct rp_send cache_op(const struct cache_pair *p, const struct rpost_reg_mr *mr,
			uint32_t opcode)
{
	struct rp_send send = rp_send(opcode, 1, p->mem, p->bytes, mr->lkey);

	send.wr.remote_addr = (uintptr_t)p->far;
	send.wr.rkey = p->peer.rkey;
	return send;
}

static int run(struct cache_pair *p, const struct rpost_reg_mr *mr, uint32_t opcode)
{
	struct rp_send send = cache_op(p, mr, opcode);
	struct rpost_wc wc;

	RP_TRY(rp_post_send(&p->c, &send));
	if (rp_wait_cq(&p->c.cq, &wc) != 1)
		return -ETIME;
	return wc.status == RPOST_WC_SUCCESS ? 0 : -EIO;
}

static void fill(char *mem, size_t bytes, unsigned int turn)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		mem[i] = i * 7 + (i >> 12) + turn;
}

int cache_move(struct cache_pair *p, const struct rpost_reg_mr *mr)
{
	size_t bytes = p->bytes;
	int ret;

	RP_TRY(rp_reg_mr(p->s.fd, p->s.pd, p->far, bytes, RPOST_ACCESS_LOCAL_WRITE |
			 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_WRITE, &p->peer));
	fill(p->mem, bytes, ++p->turn);
	memset(p->far, 0, bytes);
	ret = run(p, mr, RPOST_WR_RDMA_WRITE);
	if (!ret && memcmp(p->mem, p->far, bytes))
		ret = -EILSEQ;
	fill(p->far, bytes, ++p->turn);
	if (!ret)
		ret = run(p, mr, RPOST_WR_RDMA_READ);
	if (!ret && memcmp(p->mem, p->far, bytes))
		ret = -EILSEQ;
	rp_destroy(p->s.fd, RPOST_OBJ_MR, p->peer.handle);
	return ret;
}

int cache_wait_file_pinned(struct cache_pair *p, long long want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (fdinfo_get(p->c.fd, "bytes-pinned") != want) {
		if (rp_now_ms() > end)
			return -ETIME;
		usleep(1000);
	}
	return 0;
}

/* The header is the kernel's union swap_header: version, last page. */
int cache_swap_on(void)
{
	const uint32_t info[] = { 1, CACHE_SWAP_PAGES - 1 };
	int fd = open(SWAP_DEVICE, O_RDWR | O_EXCL);
	char header[4096] = {}, old[4096];
	bool good;

	if (fd < 0)
		return -errno;
	good = getpagesize() == sizeof(header) && pread(fd, old, sizeof(old), 0) == sizeof(old) &&
	       !memcmp(old, header, 1024);
	memcpy(header + 1024, info, sizeof(info));
	memcpy(header + sizeof(header) - 10, "SWAPSPACE2", 10);
	good = good && pwrite(fd, header, sizeof(header), 0) == sizeof(header) && !fsync(fd);
	close(fd);
	if (!good)
		return -EIO;
	return swapon(SWAP_DEVICE, 0) ? -errno : 0;
}

int cache_swap_off(void)
{
	return swapoff(SWAP_DEVICE) ? -errno : 0;
}
