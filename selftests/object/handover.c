// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests an open file in several processes: dup, fork, exec, and descriptors
 * sent over a socket.  A failure means that objects end too early or too late,
 * or that memory of the wrong process is used.
 */
#include <kselftest_harness.h>
#include "pass_fd.h"
#include "rpost_test.h"
#include "share.h"

FIXTURE(handover) {
	long refcnt;
	struct rp_end end;
	int pipe[2];	/* for results of the child */
	int hold[2];	/* the child waits for its end */
};

FIXTURE_SETUP(handover)
{
	self->refcnt = rp_module_number("refcnt");
	ASSERT_LE(0, self->refcnt);
	ASSERT_EQ(0, rp_end_init(&self->end));
	ASSERT_EQ(0, pipe(self->pipe));
	ASSERT_EQ(0, pipe(self->hold));
}

FIXTURE_TEARDOWN(handover)
{
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

/* In a child: report a result, and wait until the parent lets go. */
static void say_and_wait(FIXTURE_DATA(handover) *self, int result)
{
	char byte;

	close(self->hold[1]);
	if (write(self->pipe[1], &result, sizeof(result)) < 0)
		_exit(1);
	if (read(self->hold[0], &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static int hear(FIXTURE_DATA(handover) *self)
{
	struct pollfd pfd = { .fd = self->pipe[0], .events = POLLIN };
	int result = -ETIME;

	if (poll(&pfd, 1, TEST_TIMEOUT_MS) == 1 &&
	    read(self->pipe[0], &result, sizeof(result)) != sizeof(result))
		result = -EPIPE;
	return result;
}

static int let_go(FIXTURE_DATA(handover) *self, pid_t pid)
{
	int status = -1;

	close(self->hold[1]);
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

TEST_F(handover, dup)
{
	int copy = dup(self->end.fd);
	uint32_t pd;

	ASSERT_LE(0, copy);
	close(self->end.fd);
	EXPECT_EQ(2, rp_num_objects(copy));
	EXPECT_EQ(0, rp_alloc_pd(copy, self->end.device, &pd));
	EXPECT_EQ(3, rp_num_objects(copy));
	self->end.fd = copy;
	rp_end_close(&self->end);
}

/* A child shares the file; its objects live until both have closed it. */
TEST_F(handover, fork)
{
	uint32_t pd;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		say_and_wait(self, rp_alloc_pd(self->end.fd, self->end.device,
					       &pd));
	ASSERT_EQ(0, hear(self));
	EXPECT_EQ(3, rp_num_objects(self->end.fd));
	rp_end_close(&self->end);
	EXPECT_LT(self->refcnt, rp_module_number("refcnt"));
	EXPECT_EQ(0, let_go(self, pid));
}

TEST_F(handover, fork_and_parent_dies_first)
{
	struct rp_end *end = &self->end;
	struct rp_end peer;
	uint32_t listener;
	pid_t pid;

	/* The peer is here; the child shares the connected file. */
	ASSERT_EQ(0, rp_end_init(&peer));
	ASSERT_EQ(0, rp_listener(&peer, &listener));
	ASSERT_EQ(0, rp_join(end, &peer, listener, 0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		say_and_wait(self, 0);
	ASSERT_EQ(0, hear(self));
	rp_end_close(end);
	EXPECT_TRUE(rp_quiet(peer.channel));
	EXPECT_EQ(0, let_go(self, pid));
	EXPECT_EQ(0, rp_expect(peer.channel, peer.id,
			       RPOST_EVENT_DISCONNECTED));
	rp_end_close(&peer);
}

/* After a fork, registered memory stays that of the parent. */
TEST_F(handover, fork_and_memory)
{
	const size_t page = getpagesize();
	char *mem = rp_pages(page), *got = rp_pages(page);
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr, got_mr;
	struct rpost_wc wc;
	struct rp_end peer;
	struct rp_send send;
	uint32_t listener;
	int status = -1;
	pid_t pid;

	ASSERT_EQ(0, rp_end_init(&peer));
	ASSERT_EQ(0, rp_listener(&peer, &listener));
	ASSERT_EQ(0, rp_join(end, &peer, listener, 0));
	memset(mem, 'p', page);
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, mem, page, 0, &mr));
	ASSERT_EQ(0, rp_reg_mr(peer.fd, peer.pd, got, page,
			       RPOST_ACCESS_LOCAL_WRITE, &got_mr));
	ASSERT_EQ(0, rp_post_recv(&peer, 1, got, page, got_mr.lkey));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		memset(mem, 'c', page);
		send = rp_send(RPOST_WR_SEND, 2, mem, page, mr.lkey);
		_exit(rp_post_send(end, &send) ? 1 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(1, rp_wait_cq(&peer.cq, &wc));
	EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
	EXPECT_EQ('p', got[0]);
	EXPECT_EQ('p', got[page - 1]);
	rp_end_close(end);
	rp_end_close(&peer);
}

TEST_F(handover, close_on_exec)
{
	int comp = rp_comp_channel(self->end.fd);

	ASSERT_LE(0, comp);
	EXPECT_EQ(FD_CLOEXEC, fcntl(comp, F_GETFD));
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->end.channel, F_GETFD));
	EXPECT_EQ(O_RDONLY, fcntl(comp, F_GETFL) & O_ACCMODE);
	close(comp);
	rp_end_close(&self->end);
}

/* exec closes the file: nothing is left, though the process lives. */
TEST_F(handover, exec)
{
	char script[64];
	pid_t pid;

	rp_end_close(&self->end);
	snprintf(script, sizeof(script), "printf abcd >&%d; read x <&%d",
		 self->pipe[1], self->hold[0]);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rp_end a, b;

		close(self->hold[1]);
		if (rp_connect_pair(&a, &b, 0) || rp_comp_channel(a.fd) < 0)
			_exit(1);
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(2);
	}
	ASSERT_EQ(0x64636261, hear(self));
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	ASSERT_EQ(0, waitpid(pid, NULL, WNOHANG));
	let_go(self, pid);
}

/* Send the device file and a channel to a process that has neither. */
TEST_F(handover, sent_over_a_socket)
{
	int socks[2], fd, channel;
	uint32_t id;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		rp_end_close(&self->end);
		fd = recv_fd(socks[1]);
		channel = recv_fd(socks[1]);
		if (fd < 0 || channel < 0 || rp_num_objects(fd) != 2)
			say_and_wait(self, 1);
		if (rp_create_id(fd, channel, &id) ||
		    rp_resolve_addr(fd, id, 1) ||
		    rp_expect(channel, id, RPOST_EVENT_ADDR_RESOLVED))
			say_and_wait(self, 2);
		say_and_wait(self, rp_num_objects(fd));
	}
	ASSERT_EQ(0, send_fd(socks[0], self->end.fd));
	ASSERT_EQ(0, send_fd(socks[0], self->end.channel));
	rp_end_close(&self->end);
	EXPECT_EQ(3, hear(self));
	EXPECT_LT(self->refcnt, rp_module_number("refcnt"));
	EXPECT_EQ(0, let_go(self, pid));
}

/* A descriptor that was sent but not received keeps the file open. */
TEST_F(handover, left_in_a_socket)
{
	int socks[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	ASSERT_EQ(0, send_fd(socks[0], self->end.fd));
	rp_end_close(&self->end);
	EXPECT_LT(self->refcnt, rp_module_number("refcnt"));
	close(socks[0]);
	close(socks[1]);
}

TEST_F(handover, share)
{
	struct rpost_create_cq *cq = &self->end.cq.cmd;
	int fd, again;
	uint32_t pd;
	void *map;

	EXPECT_EQ(-ENODEV, share_device(self->end.fd, 0));
	EXPECT_EQ(-ENODEV, share_device(self->end.fd, UINT32_MAX));
	EXPECT_EQ(-ENODEV, named_device(self->end.fd));
	fd = share_device(self->end.fd, self->end.device);
	ASSERT_LE(0, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(self->end.device, named_device(fd));
	again = share_device(fd, self->end.device);
	ASSERT_LE(0, again);
	EXPECT_EQ(self->end.device, named_device(again));
	close(again);

	ASSERT_EQ(0, rp_alloc_pd(fd, self->end.device, &pd));
	EXPECT_EQ(3, rp_num_objects(self->end.fd));
	ASSERT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_PD, pd));
	/* The file and its ring stay as long as one descriptor. */
	rp_end_close(&self->end);
	EXPECT_EQ(2, rp_num_objects(fd));
	map = mmap(NULL, cq->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   cq->mmap_offset);
	ASSERT_NE(MAP_FAILED, map);
	close(fd);
	EXPECT_LT(self->refcnt, rp_module_number("refcnt"));
	munmap(map, cq->mmap_size);
}

TEST_F(handover, query_object)
{
	struct rp_end *end = &self->end;
	struct rpost_query_object cmd;
	struct rpost_reg_mr mr;
	char *mem = rp_pages(getpagesize());
	uint32_t type;

	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, mem, 100,
			       RPOST_ACCESS_LOCAL_WRITE, &mr));
	ASSERT_EQ(0, query_object(end->fd, RPOST_OBJ_PD, end->pd, &cmd));
	EXPECT_EQ(end->device, cmd.device);
	EXPECT_EQ(end->pd, cmd.pd);
	EXPECT_EQ(0, cmd.lkey | cmd.rkey | cmd.length | cmd.iova);
	ASSERT_EQ(0, query_object(end->fd, RPOST_OBJ_MR, mr.handle, &cmd));
	EXPECT_EQ(end->device, cmd.device);
	EXPECT_EQ(end->pd, cmd.pd);
	EXPECT_EQ(mr.lkey, cmd.lkey);
	EXPECT_EQ(mr.rkey, cmd.rkey);
	EXPECT_EQ(100, cmd.length);
	EXPECT_EQ((uintptr_t)mem, cmd.iova);

	EXPECT_EQ(-ENOENT, query_object(end->fd, RPOST_OBJ_MR, end->pd, &cmd));
	EXPECT_EQ(-ENOENT, query_object(end->fd, RPOST_OBJ_PD, mr.handle, &cmd));
	EXPECT_EQ(-ENOENT, query_object(end->fd, RPOST_OBJ_PD, 0, &cmd));
	for (type = 0; type < 32; type++)
		if (type != RPOST_OBJ_PD && type != RPOST_OBJ_MR)
			EXPECT_EQ(-EINVAL, query_object(end->fd, type, end->pd,
							&cmd));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(-ENOENT, query_object(end->fd, RPOST_OBJ_MR, mr.handle, &cmd));
	rp_end_close(end);
}

/* The receiver uses its own memory in the domain; the sender has gone. */
TEST_F(handover, share_sent_over_a_socket)
{
	struct rp_end *end = &self->end;
	int socks[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rpost_query_object cmd;
		struct rpost_reg_mr mr;

		rp_end_close(end);
		fd = recv_fd(socks[1]);
		if (fd < 0 || named_device(fd) != (int)end->device)
			say_and_wait(self, 1);
		if (query_object(fd, RPOST_OBJ_PD, end->pd, &cmd))
			say_and_wait(self, 2);
		if (rp_reg_mr(fd, end->pd, rp_pages(getpagesize()), 64,
			      RPOST_ACCESS_LOCAL_WRITE, &mr))
			say_and_wait(self, 3);
		say_and_wait(self, 10 + rp_num_objects(fd));
	}
	fd = share_device(end->fd, end->device);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, send_fd(socks[0], fd));
	close(fd);
	rp_end_close(end);
	EXPECT_EQ(13, hear(self));
	EXPECT_LT(self->refcnt, rp_module_number("refcnt"));
	EXPECT_EQ(0, let_go(self, pid));
}

TEST_HARNESS_MAIN
