// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that libibverbs and librdmacm have added after version 44.  The
 * headers of the build may be older; with newer headers the compiler compares
 * the declarations.
 */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/internal.h"

struct ibv_buf {
	struct ibv_pd *pd;
	void *addr;
	size_t length;
};

struct ibv_dmah;
struct ibv_mr_init_attr;

/* enum ibv_mr_init_attr_mask and struct ibv_mr_init_attr of version 65. */
enum {
	MR_MASK_IOVA	= 1 << 0,
	MR_MASK_ADDR	= 1 << 1,
	MR_MASK_FD	= 1 << 2,
	MR_MASK_FD_OFFSET = 1 << 3,
	MR_MASK_BUF	= 1 << 5,
};

struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};

/* Version 65 has this macro. */
#ifdef IBV_DEVICE_CC_DMA_BOUNCE
static_assert(sizeof(struct mr_init_attr) == sizeof(struct ibv_mr_init_attr),
	      "struct ibv_mr_init_attr");
static_assert(offsetof(struct mr_init_attr, buf) ==
	      offsetof(struct ibv_mr_init_attr, buf), "buf");
static_assert((int)MR_MASK_IOVA == IBV_REG_MR_MASK_IOVA, "iova");
static_assert((int)MR_MASK_ADDR == IBV_REG_MR_MASK_ADDR, "addr");
static_assert((int)MR_MASK_FD == IBV_REG_MR_MASK_FD, "fd");
static_assert((int)MR_MASK_FD_OFFSET == IBV_REG_MR_MASK_FD_OFFSET, "fd_offset");
static_assert((int)MR_MASK_BUF == IBV_REG_MR_MASK_BUF, "buf");
#endif

static bool buf_holds(const struct ibv_buf *buf, struct ibv_pd *pd,
		      const void *addr, size_t length)
{
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)buf->addr;

	return buf->pd == pd && offset <= buf->length &&
	       length <= buf->length - offset;
}

/**
 * ibv_reg_mr_ex() - register memory, ibv_reg_mr_ex(3)
 * @pd: the protection domain
 * @mr_init_attr: the memory, given by its address, or by a dma-buf with fd,
 *                fd_offset and iova
 *
 * Return: the region, to be released by ibv_dereg_mr(), or NULL with errno:
 * EOPNOTSUPP for a DMA handle or unknown bits of comp_mask, EINVAL for neither
 * or both, for memory outside the buffer and for a buffer of another protection
 * domain, else as ibv_reg_mr_iova2() or ibv_reg_dmabuf_mr().
 */
RPOST_API struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd,
				       struct ibv_mr_init_attr *mr_init_attr)
{
	const uint64_t by_fd = MR_MASK_FD | MR_MASK_FD_OFFSET;
	const struct mr_init_attr *attr = (const void *)mr_init_attr;
	uint64_t iova;

	if (attr->comp_mask & ~(MR_MASK_IOVA | MR_MASK_ADDR | MR_MASK_BUF | by_fd))
		return rpost_null(EOPNOTSUPP);
	if (attr->comp_mask == (by_fd | MR_MASK_IOVA))
		return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length,
					 attr->iova, attr->fd, attr->access);
	if (!(attr->comp_mask & MR_MASK_ADDR) || attr->comp_mask & by_fd)
		return rpost_null(EINVAL);
	if (attr->comp_mask & MR_MASK_BUF &&
	    !buf_holds(attr->buf, pd, attr->addr, attr->length))
		return rpost_null(EINVAL);

	iova = attr->comp_mask & MR_MASK_IOVA ? attr->iova :
						(uintptr_t)attr->addr;
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova,
				attr->access);
}

static size_t whole_pages(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) & ~(page - 1);
}

/**
 * ibv_alloc_buf() - allocate memory, ibv_alloc_buf(3)
 * @pd: the protection domain
 * @size: bytes
 * @buf: set to the buffer, for ibv_free_buf() and ibv_reg_buf_mr()
 *
 * Return: the address, at the start of a page, or NULL with errno: EINVAL for
 * 0 bytes, ENOMEM.
 */
RPOST_API void *ibv_alloc_buf(struct ibv_pd *pd, size_t size,
			      struct ibv_buf **buf)
{
	struct ibv_buf *new;

	if (!size)
		return rpost_null(EINVAL);
	if (!whole_pages(size))
		return rpost_null(ENOMEM);
	new = calloc(1, sizeof(*new));
	if (!new)
		return NULL;

	new->pd = pd;
	new->length = size;
	new->addr = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new->addr == MAP_FAILED) {
		free(new);
		return NULL;
	}
	*buf = new;
	return new->addr;
}

/**
 * ibv_free_buf() - release memory, ibv_alloc_buf(3)
 * @buf: from ibv_alloc_buf(), no longer registered
 */
RPOST_API void ibv_free_buf(struct ibv_buf *buf)
{
	munmap(buf->addr, whole_pages(buf->length));
	free(buf);
}

/**
 * ibv_reg_buf_mr() - register memory of ibv_alloc_buf(), ibv_alloc_buf(3)
 * @pd: the protection domain
 * @buf: from ibv_alloc_buf()
 * @addr: first byte, in the buffer
 * @length: bytes, in the buffer
 * @access: enum ibv_access_flags
 *
 * Return: the region, to be released by ibv_dereg_mr(), or NULL with errno:
 * EINVAL for memory outside the buffer or another protection domain, else as
 * ibv_reg_mr_iova2().
 */
RPOST_API struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
					void *addr, size_t length, int access)
{
	if (!buf_holds(buf, pd, addr, length))
		return rpost_null(EINVAL);
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

/**
 * ibv_export_buf_dmabuf_fd() - get the dma-buf of a buffer, ibv_alloc_buf(3)
 * @buf: from ibv_alloc_buf()
 *
 * Return: -1 with ENODATA, since the buffer is ordinary memory.
 */
RPOST_API int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	return rpost_fail(ENODATA);
}

/* The speed of one lane in 100 Mbit/s, by the bit in active_speed. */
static const uint16_t lane_speeds[] = {
	25, 50, 100, 100, 140, 250, 500, 1000, 2000,
};

/* The number of lanes, by the bit in active_width. */
static const uint8_t lanes[] = { 1, 4, 8, 12, 2 };

/**
 * ibv_query_port_speed() - get a port's speed, ibv_query_port_speed(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @port_speed: set to its speed in 100 Mbit/s
 *
 * Return: 0, or an errno value: EINVAL for a port that the device does not
 * have or whose speed or width is unknown, ENODEV if the device has gone.
 */
RPOST_API int ibv_query_port_speed(struct ibv_context *context,
				   uint32_t port_num, uint64_t *port_speed)
{
	struct rpost_query_port q = {
		.device = rpost_ctx(context)->dev->num,
		.port = port_num,
	};
	unsigned int speed, width;
	int err;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_PORT, &q);
	if (err)
		return err;

	speed = ffs(q.active_speed);
	width = ffs(q.active_width);
	if (!speed || speed > ARRAY_SIZE(lane_speeds) ||
	    !width || width > ARRAY_SIZE(lanes))
		return EINVAL;
	*port_speed = (uint64_t)lane_speeds[speed - 1] * lanes[width - 1];
	return 0;
}

/**
 * ibv_wr_opcode_str() - get the name of a work request's operation,
 * ibv_event_type_str(3)
 * @opcode: the operation
 *
 * Return: a static string, "unknown" if there is no such operation.
 */
RPOST_API const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "rdma-write",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
		[IBV_WR_SEND] = "send",
		[IBV_WR_SEND_WITH_IMM] = "send-with-imm",
		[IBV_WR_RDMA_READ] = "rdma-read",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
		[IBV_WR_LOCAL_INV] = "local-inv",
		[IBV_WR_BIND_MW] = "bind-mw",
		[IBV_WR_SEND_WITH_INV] = "send-with-inv",
		[IBV_WR_TSO] = "tso",
		[IBV_WR_DRIVER1] = "driver1",
		[14] = "flush",
		[IBV_WR_ATOMIC_WRITE] = "atomic-write",
	};
	unsigned int i = opcode;

	return i < ARRAY_SIZE(names) && names[i] ? names[i] : "unknown";
}
