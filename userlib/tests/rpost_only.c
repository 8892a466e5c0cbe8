// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that came after version 44, old and private versions of symbols,
 * rsocket functions for ordinary descriptors, and conversions.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "tap.h"

struct ibv_buf;
struct ibv_dmah;

/* struct ibv_mr_init_attr and its bits in version 65. */
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

enum { IOVA = 1, ADDR = 2, FD = 4, FD_OFFSET = 8, DMAH = 16, BUF = 32 };

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
			      void *addr, size_t length, int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
			 uint64_t *port_speed);
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, void *attr);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
				struct ib_uverbs_qp_attr *src);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

static void buffers(struct ibv_context *ctx)
{
	struct ibv_pd *pd, *other;
	struct mr_init_attr attr = { .comp_mask = ADDR | DMAH };
	struct ibv_buf *buf;
	struct ibv_mr *mr;
	char *addr;

	need(pd = ibv_alloc_pd(ctx));
	need(other = ibv_alloc_pd(ctx));
	ok(!ibv_alloc_buf(pd, 0, &buf) && errno == EINVAL);
	ok(!ibv_alloc_buf(pd, SIZE_MAX, &buf) && errno == ENOMEM);
	need(addr = ibv_alloc_buf(pd, 10000, &buf));
	ok(!((uintptr_t)addr % sysconf(_SC_PAGESIZE)));
	memset(addr, 0xa5, 10000);

	need(mr = ibv_reg_buf_mr(pd, buf, addr, 10000, IBV_ACCESS_LOCAL_WRITE));
	ok(mr->addr == addr && mr->length == 10000 && mr->pd == pd);
	ok(!ibv_dereg_mr(mr));
	ok(!ibv_reg_buf_mr(pd, buf, addr, 10001, 0) && errno == EINVAL);
	ok(!ibv_reg_buf_mr(pd, buf, addr - 1, 1, 0) && errno == EINVAL);
	ok(!ibv_reg_buf_mr(pd, buf, addr + 1, SIZE_MAX, 0) && errno == EINVAL);
	ok(!ibv_reg_buf_mr(other, buf, addr, 10000, 0) && errno == EINVAL);
	ok(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);

	ok(!ibv_reg_mr_ex(pd, &attr) && errno == EOPNOTSUPP);
	attr.comp_mask = BUF;
	ok(!ibv_reg_mr_ex(pd, &attr) && errno == EINVAL);
	attr.comp_mask = FD | IOVA;
	ok(!ibv_reg_mr_ex(pd, &attr) && errno == EINVAL);
	attr.comp_mask = FD | FD_OFFSET | IOVA | ADDR;
	ok(!ibv_reg_mr_ex(pd, &attr) && errno == EINVAL);
	/* rxe has no dma-bufs. */
	attr.comp_mask = FD | FD_OFFSET | IOVA;
	attr.fd = -1;
	ok(!ibv_reg_mr_ex(pd, &attr) && errno == EOPNOTSUPP);
	attr = (struct mr_init_attr) {
		.comp_mask = ADDR | BUF,
		.addr = addr,
		.buf = buf,
		.length = 10001,
	};
	ok(!ibv_reg_mr_ex(pd, &attr) && errno == EINVAL);
	attr.length = 4096;
	need(mr = ibv_reg_mr_ex(pd, &attr));
	ok(!ibv_dereg_mr(mr));
	attr.comp_mask = ADDR | IOVA;
	attr.iova = 0x100000;
	need(mr = ibv_reg_mr_ex(pd, &attr));
	ok(mr->addr == addr && mr->length == 4096);
	ok(!ibv_dereg_mr(mr));

	ibv_free_buf(buf);
	ok(!ibv_dealloc_pd(other));
	ok(!ibv_dealloc_pd(pd));
}

/* struct ibv_port_attr has grown twice: it had 48, 52, then 56 bytes. */
static void port(struct ibv_context *ctx)
{
	union {
		struct ibv_port_attr attr;
		uint32_t words[20];
	} port;

	memset(&port, 0xa5, sizeof(port));
	ok(!verbs_get_ctx(ctx)->query_port(ctx, 1, &port.attr, 60));
	ok(port.attr.active_speed && port.words[13] == port.attr.active_speed);
	ok(port.words[14] == 0 && port.words[15] == 0xa5a5a5a5);
	memset(&port, 0xa5, sizeof(port));
	ok(!verbs_get_ctx(ctx)->query_port(ctx, 1, &port.attr, 52));
	ok(!port.words[12] && port.words[13] == 0xa5a5a5a5);
}

static void device(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	uint64_t speed = 0;

	need(list = ibv_get_device_list(NULL));
	need(list[0]);
	need(ctx = ibv_open_device(list[0]));
	ok(!ibv_query_port_speed(ctx, 1, &speed) && speed >= 25);
	printf("# %u00 Mbit/s\n", (unsigned int)speed);
	ok(ibv_query_port_speed(ctx, 99, &speed) == EINVAL);
	ok(!ibv_alloc_dmah(ctx, NULL) && errno == EOPNOTSUPP);
	port(ctx);
	buffers(ctx);
	ok(!ibv_close_device(ctx));
	ibv_free_device_list(list);
}

static void names(void)
{
	ok(!strcmp(ibv_wr_opcode_str(IBV_WR_RDMA_WRITE_WITH_IMM),
		   "rdma-write-with-imm"));
	ok(!strcmp(ibv_wr_opcode_str(IBV_WR_ATOMIC_WRITE), "atomic-write"));
	ok(!strcmp(ibv_wr_opcode_str(12), "unknown"));
	ok(!strcmp(ibv_wr_opcode_str(-1), "unknown"));
	ok(rdma_write_cm_event(NULL, 18, 0, 0) == -1 && errno == EINVAL);
}

static void versions(void)
{
	struct ibv_device **(*old_list)(int *num);
	const char *(*private_str)(enum ibv_wr_opcode opcode);
	int (*cmd)(void);
	bool *flag;
	void *lib;

	need(lib = dlopen("librdma_post.so.1", RTLD_NOW));
	need(old_list = dlvsym(lib, "ibv_get_device_list", "IBVERBS_1.0"));
	ok(old_list != ibv_get_device_list);
	ok(!old_list(NULL) && errno == ENOSYS);
	ok(dlvsym(lib, "ibv_get_device_list", "IBVERBS_1.1") ==
	   (void *)ibv_get_device_list);
	need(cmd = dlvsym(lib, "ibv_cmd_alloc_pd", "IBVERBS_PRIVATE_34"));
	ok(cmd() == ENOSYS);
	need(cmd = dlvsym(lib, "ibv_cmd_alloc_pd", "IBVERBS_PRIVATE_65"));
	ok(cmd() == ENOSYS);
	need(private_str = dlvsym(lib, "ibv_wr_opcode_str",
				  "IBVERBS_PRIVATE_34"));
	ok(!strcmp(private_str(IBV_WR_SEND), "send"));
	need(flag = dlvsym(lib, "verbs_allow_disassociate_destroy",
			   "IBVERBS_PRIVATE_65"));
	ok(!*flag);
	ok(!dlvsym(lib, "rpost_none_error", "RDMA_POST_1.0"));
	dlclose(lib);
}

static void ordinary_descriptors(void)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 7 };
	struct timeval zero = { 0 };
	struct pollfd pfd;
	fd_set set;
	char byte;
	int p[2], ep;

	need(!pipe(p));
	pfd = (struct pollfd) { .fd = p[0], .events = POLLIN };
	need((ep = repoll_create(EPOLL_CLOEXEC)) >= 0);
	ok(!repoll_ctl(ep, EPOLL_CTL_ADD, p[0], &ev));
	ok(rpoll(&pfd, 1, 0) == 0);
	ok(repoll_wait(ep, &ev, 1, 0) == 0);
	need(write(p[1], "x", 1) == 1);
	ok(rpoll(&pfd, 1, 0) == 1 && pfd.revents == POLLIN);
	FD_ZERO(&set);
	FD_SET(p[0], &set);
	ok(rselect(p[0] + 1, &set, NULL, NULL, &zero) == 1);
	ok(repoll_wait(ep, &ev, 1, 0) == 1 && ev.data.u32 == 7);

	ok(rsocket(AF_INET, SOCK_STREAM, 0) == -1 && errno == ENOSYS);
	ok(rread(p[0], &byte, 1) == -1 && errno == EBADF);
	ok(rclose(p[0]) == -1 && errno == EBADF);
	need(read(p[0], &byte, 1) == 1);
	close(ep);
	close(p[0]);
	close(p[1]);
}

static void conversions(void)
{
	struct ib_uverbs_qp_attr kern;
	struct ibv_qp_attr attr;
	char buf[8];

	memset(&kern, 0, sizeof(kern));
	kern.qp_state = IBV_QPS_RTR;
	kern.dest_qp_num = 0x123456;
	kern.ah_attr.grh.dgid[15] = 9;
	kern.ah_attr.port_num = 1;
	kern.max_inline_data = 64;
	kern.rnr_retry = 7;
	kern.alt_timeout = 3;
	memset(&attr, 0xa5, sizeof(attr));
	ibv_copy_qp_attr_from_kern(&attr, &kern);
	ok(attr.qp_state == IBV_QPS_RTR && attr.dest_qp_num == 0x123456);
	ok(attr.ah_attr.grh.dgid.raw[15] == 9 && attr.ah_attr.port_num == 1);
	ok(attr.cap.max_inline_data == 64 && attr.rnr_retry == 7);
	ok(attr.alt_timeout == 3 && attr.alt_ah_attr.dlid == 0);

	ok(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", buf,
			       sizeof(buf)) == 5 && !strcmp(buf, "Linux"));
	ok(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", buf, 5) == -1 &&
	   errno == EINVAL);
	ok(ibv_read_sysfs_file("/proc", "nothing", buf, sizeof(buf)) == -1 &&
	   errno == ENOENT);
}

int main(void)
{
	names();
	versions();
	ordinary_descriptors();
	conversions();
	device();
	return tap_done();
}
