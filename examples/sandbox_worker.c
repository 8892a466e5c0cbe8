// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The worker of sandbox: gives up files, network and rights, and only then gets a
 * descriptor of the device.  With that it makes its own queue pair and memory, and
 * talks to the worker at the other side.
 *
 * The supervisor starts it, with a socket as standard input.  A provider of
 * libibverbs may be unable to import devices; librdma_post can.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sandbox.h"

#define LINE 32
#define SOCKET 0

/* Goes on in a child, which sees no other processes and can send them no signals. */
static void leave_processes(void)
{
	pid_t pid = fork();
	int status;

	check(pid < 0, "fork");
	if (!pid)
		return;
	close(SOCKET);
	check(waitpid(pid, &status, 0) != pid, "waitpid");
	exit(status != 0);
}

/*
 * Leaves three descriptors: the socket, and two to write to.  The root is a directory
 * that is no more, so that nothing can come into it.
 */
static void lock_in(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = {};
	char root[] = "/tmp/sandboxXXXXXX";

	check(close_range(STDERR_FILENO + 1, ~0U, 0), "close_range");
	check(!mkdtemp(root) || chdir(root) || rmdir(root), root);
	check(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
		      CLONE_NEWPID), "unshare");
	check(chroot("."), "chroot");
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
	check(syscall(SYS_capset, &header, none), "capset");
	expect(access("/dev", F_OK), "no /dev");
	leave_processes();
	expect(getpid() == 1, "no other processes");
}

static void say(struct ibv_qp *qp, const char *text)
{
	struct ibv_sge sge = { (uintptr_t)text, strlen(text) + 1, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE }, *bad;

	check(errno = ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* Brings the queue pair up as the supervisor says; it knows the addresses. */
static bool connect_qp(struct ibv_qp *qp, struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad;
	struct step step;

	tell(SOCKET, &qp->qp_num, sizeof(qp->qp_num));
	for (;;) {
		learn(SOCKET, &step, sizeof(step));
		if (!step.mask)
			return step.first;
		check(errno = ibv_modify_qp(qp, &step.attr, step.mask), "ibv_modify_qp");
		if (step.attr.qp_state == IBV_QPS_INIT)
			check(errno = ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
		tell(SOCKET, &qp->qp_num, sizeof(qp->qp_num));
	}
}

/* Two things happen: one line goes, one line comes. */
static void talk(struct ibv_qp *qp, bool first, const char *in)
{
	struct ibv_comp_channel *channel = qp->recv_cq->channel;
	struct pollfd event = { .fd = channel->fd, .events = POLLIN };
	struct ibv_wc wc;
	int i, n;

	if (first)
		say(qp, "hello, second");
	for (i = 0; i < 2; i++) {
		while (!(n = ibv_poll_cq(qp->recv_cq, 1, &wc))) {
			expect(poll(&event, 1, 60000) == 1, "an event in a minute");
			check(next_completions(channel), "next_completions");
		}
		expect(n == 1 && !wc.status, "a completion without an error");
		if (wc.opcode != IBV_WC_RECV)
			continue;
		printf("worker: %.*s\n", wc.byte_len, in);
		if (!first)
			say(qp, "hello, first");
	}
}

int main(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1,
			 .max_recv_sge = 1, .max_inline_data = LINE },
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	struct ibv_comp_channel *channel;
	bool first;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	char in[LINE] = "";

	lock_in();
	check(!(verbs = ibv_import_device(pass(SOCKET, -1))), "ibv_import_device");
	check(!(pd = ibv_alloc_pd(verbs)), "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, in, LINE, IBV_ACCESS_LOCAL_WRITE);
	check(!mr, "ibv_reg_mr");
	check(!(channel = ibv_create_comp_channel(verbs)), "ibv_create_comp_channel");
	attr.send_cq = attr.recv_cq = ibv_create_cq(verbs, 2, NULL, channel, 0);
	check(!attr.recv_cq || ibv_req_notify_cq(attr.recv_cq, 0), "ibv_create_cq");
	check(!(qp = ibv_create_qp(pd, &attr)), "ibv_create_qp");

	first = connect_qp(qp, &(struct ibv_sge){ (uintptr_t)in, LINE, mr->lkey });
	talk(qp, first, in);

	ibv_destroy_qp(qp);
	ibv_destroy_cq(attr.recv_cq);
	ibv_destroy_comp_channel(channel);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(verbs);
	close(SOCKET);
	return 0;
}
