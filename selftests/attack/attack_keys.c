// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a device refuses keys and ranges that are not the attacker's, in
 * every operation and at every place of a list, and all keys near those that
 * exist.  keys.c has the single cases.  A failure means that a program reads or
 * writes memory that it did not register.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "attack.h"

/* The address of init_uts_ns, or a guess. */
static uint64_t kernel_addr = 0xffffffff81000000;

/* Find it once for all tests, which are processes: the file is long. */
static void __attribute__((constructor)) find_kernel_addr(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long addr;
	char name[256];

	while (f && fscanf(f, "%llx %*c %255s%*[^\n]", &addr, name) == 2) {
		if (!strcmp(name, "init_uts_ns") && addr) {
			kernel_addr = addr;
			break;
		}
	}
	if (f)
		fclose(f);
}

/*
 * Is it the last entry of a receive, and reaches past its region?  Then the message
 * is too long: devices differ in what they call that, and may lose a datagram.
 */
static bool is_cut(const struct attack *t, const struct rpost_sge *sges, uint32_t num,
		   uint32_t bad, int status)
{
	return t->op == OP_RECV && bad == num - 1 && sges[bad].lkey == t->mr.lkey &&
	       sges[bad].addr - t->mr.addr < t->mr.length &&
	       ((status > RPOST_WC_SUCCESS && status != RPOST_WC_WR_FLUSH_ERR) ||
		(status == -ETIME && t->type == RPOST_QPT_UD));
}

/* Expect a protection error, a flush after it, and no memory changed. */
static void attack(struct __test_metadata *_metadata, struct attack *t,
		   const struct rpost_sge *sges, uint32_t num, uint32_t bad,
		   const char *what)
{
	int status = attack_run(t, sges, num, bad);

	EXPECT_TRUE(status == RPOST_WC_LOC_PROT_ERR ||
		    is_cut(t, sges, num, bad, status))
		TH_LOG("status %d: %s, entry %u: %#llx + %#x, key %#x (good %#llx, %#x)",
		       status, what, bad, (long long)sges[bad].addr, sges[bad].length,
		       sges[bad].lkey,
		       (long long)t->mr.addr, t->mr.lkey);
	EXPECT_TRUE(untouched(t))
		TH_LOG("%s, entry %u", what, bad);
	ASSERT_EQ(0, attack_again(t));
}

/* ------------------------------------- every operation, every entry */

FIXTURE(list) {
	struct attack t;
	struct rpost_reg_mr foreign;	/* region of another process */
	int socket;
	pid_t pid;
	uint32_t len;
};

FIXTURE_VARIANT(list) {
	uint32_t type;
	uint32_t op;
	bool srq;
};

#define LIST(name, type, op, srq) \
	FIXTURE_VARIANT_ADD(list, name) { RPOST_QPT_##type, op, srq }

LIST(rc_send, RC, RPOST_WR_SEND, false);
LIST(rc_send_with_imm, RC, RPOST_WR_SEND_WITH_IMM, false);
LIST(rc_send_with_inv, RC, RPOST_WR_SEND_WITH_INV, false);
LIST(rc_write, RC, RPOST_WR_RDMA_WRITE, false);
LIST(rc_write_with_imm, RC, RPOST_WR_RDMA_WRITE_WITH_IMM, false);
LIST(rc_read, RC, RPOST_WR_RDMA_READ, false);
LIST(rc_cmp_swp, RC, RPOST_WR_ATOMIC_CMP_AND_SWP, false);
LIST(rc_fetch_add, RC, RPOST_WR_ATOMIC_FETCH_AND_ADD, false);
LIST(rc_recv, RC, OP_RECV, false);
LIST(rc_srq_recv, RC, OP_RECV, true);
LIST(uc_send, UC, RPOST_WR_SEND, false);
LIST(uc_write, UC, RPOST_WR_RDMA_WRITE, false);
LIST(ud_send, UD, RPOST_WR_SEND, false);
LIST(ud_recv, UD, OP_RECV, false);
LIST(ud_srq_recv, UD, OP_RECV, true);

/* Keep a region until @socket is closed; return 0 if it is unchanged. */
static int other_process(int socket)
{
	const size_t bytes = 4 * getpagesize();
	char *mem = rp_pages(bytes);
	struct rpost_reg_mr mr;
	int fd = rp_open();
	uint32_t pd;

	RP_TRY(!mem || fd < 0);
	memset(mem, 'p', bytes);
	RP_TRY(rp_alloc_pd(fd, rp_first_device(fd), &pd));
	RP_TRY(rp_reg_mr(fd, pd, mem, bytes, ALL, &mr));
	RP_TRY(write(socket, &mr, sizeof(mr)) != sizeof(mr));
	RP_TRY(read(socket, mem + bytes - 1, 1));
	RP_TRY(!all_bytes(mem, bytes, 'p'));
	return 0;
}

FIXTURE_SETUP(list)
{
	int sockets[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	self->pid = fork();
	ASSERT_LE(0, self->pid);
	if (!self->pid) {
		close(sockets[0]);
		_exit(other_process(sockets[1]) != 0);
	}
	close(sockets[1]);
	self->socket = sockets[0];
	ASSERT_EQ(sizeof(self->foreign),
		  read(self->socket, &self->foreign, sizeof(self->foreign)));
	ASSERT_EQ(0, attack_init(&self->t, variant->type, variant->op,
				 variant->srq));
	self->len = is_atomic(variant->op) ? 8 : LEN;
}

FIXTURE_TEARDOWN(list)
{
	int status;

	close(self->socket);
	ASSERT_EQ(self->pid, waitpid(self->pid, &status, 0));
	EXPECT_EQ(0, status);
	attack_close(&self->t);
}

/*
 * One entry of a list is bad and the others are good.  Must complete with a
 * local protection error; nothing arrives at the victim, and nothing changes
 * here or in the other process except the attacker's own region.
 */
TEST_F(list, one_entry)
{
	struct attack *t = &self->t;
	const uint64_t begin = t->mr.addr, end = begin + t->mr.length;
	const uint32_t num = is_atomic(t->op) ? 1 : RP_SGE;
	struct rpost_reg_mr gone;
	struct rpost_sge list[RP_SGE];
	uint32_t i, k;

	ASSERT_EQ(0, rp_reg_mr(t->a.fd, t->a.pd, t->mem, t->bytes, RW, &gone));
	ASSERT_EQ(0, rp_destroy(t->a.fd, RPOST_OBJ_MR, gone.handle));
	const struct {
		const char *what;
		uint64_t addr;
		uint32_t lkey;
		bool only_reads;
	} bad[] = {
		{ "forged", (uintptr_t)t->mem, t->mr.lkey ^ 0x5500, false },
		{ "destroyed", gone.addr, gone.lkey, false },
		{ "of another domain", t->other.addr, t->other.lkey, false },
		{ "of another file", t->victim_mr.addr, t->victim_mr.lkey,
		  false },
		{ "of another process", self->foreign.addr, self->foreign.lkey,
		  false },
		{ "one byte before", begin - 1, t->mr.lkey, false },
		{ "one byte beyond", end - self->len + 1, t->mr.lkey, false },
		{ "behind", end, t->mr.lkey, false },
		{ "wraps around", UINT64_MAX - self->len + 2, t->mr.lkey,
		  false },
		{ "of the kernel", kernel_addr, t->mr.lkey,
		  false },
		{ "not to be written", t->ro.addr, t->ro.lkey, true },
	};

	for (k = 0; k < ARRAY_SIZE(bad); k++) {
		if (bad[k].only_reads && !writes_local(t->op))
			continue;
		for (i = 0; i < num; i++) {
			for (uint32_t j = 0; j < num; j++)
				list[j] = (struct rpost_sge) {
					begin + j * LEN, self->len, t->mr.lkey,
				};
			list[i].addr = bad[k].addr;
			list[i].lkey = bad[k].lkey;
			attack(_metadata, t, list, num, i, bad[k].what);
		}
	}
}

/* ------------------------------------------------------- guessed keys */

FIXTURE(guess) {
	struct attack t;
};

FIXTURE_VARIANT(guess) {
	uint32_t op;
};

FIXTURE_VARIANT_ADD(guess, write) { RPOST_WR_RDMA_WRITE };
FIXTURE_VARIANT_ADD(guess, read) { RPOST_WR_RDMA_READ };
FIXTURE_VARIANT_ADD(guess, recv) { OP_RECV };

FIXTURE_SETUP(guess)
{
	ASSERT_EQ(0, attack_init(&self->t, RPOST_QPT_RC, variant->op, false));
	self->t.alone = true;
}

FIXTURE_TEARDOWN(guess)
{
	attack_close(&self->t);
}

/*
 * A domain has a privileged key that opens all kernel memory by address.  rxe
 * numbers keys one after the other and varies 8 bits: the domain's number comes
 * two before that of its first region.  So all 256 variants are tried on kernel
 * memory that may be read, and whose change uname() would show.  All must fail.
 */
TEST_F(guess, privileged)
{
	struct attack *t = &self->t;
	const uint32_t domain = (t->mr.lkey >> 8) - 2;
	struct rpost_sge sge = { kernel_addr, LEN, 0 };
	uint32_t i;

	for (i = 0; i < 256 + 16; i++) {
		/* Other devices use 0, 1 or all ones: try numbers near them. */
		sge.lkey = i < 256 ? domain << 8 | i : i < 264 ? i - 256 : ~(i - 264);
		attack(_metadata, t, &sge, 1, 0, "privileged");
	}
}

/* ------------------------------------------------- very many guesses */

#define MANY	RP_DEPTH

FIXTURE(many) {
	struct attack t;
};

FIXTURE_SETUP(many)
{
	ASSERT_EQ(0, attack_init(&self->t, RPOST_QPT_RC, RPOST_WR_RDMA_WRITE,
				 false));
}

FIXTURE_TEARDOWN(many)
{
	attack_close(&self->t);
}

/* An atomic operation with a second entry. */
struct guess {
	struct rpost_send_wr wr;
	struct rpost_sge guess, good;
};

static struct guess one_guess(struct attack *t, uint32_t key)
{
	return (struct guess) {
		.wr = {
			.size = sizeof(struct guess),
			.opcode = RPOST_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = RPOST_SEND_SIGNALED,
			.num_sge = 2,
			.rkey = t->victim_mr.rkey,
			.remote_addr = t->victim_mr.iova,
		},
		.guess = { t->mr.addr, 8, key },
		.good = { t->mr.addr, 8, t->mr.lkey },
	};
}

/* Try @num keys from @first; return how many the device accepts. */
static int try_keys(struct attack *t, uint32_t first, uint32_t num)
{
	struct guess block[MANY];
	uint32_t done = 0, i, n, posted;
	struct rpost_wc wc;
	int ret, good = 0;

	while (done < num) {
		n = num - done < MANY ? num - done : MANY;
		for (i = 0; i < n; i++)
			block[i] = one_guess(t, first + done + i);
		ret = rp_post(t->a.fd, RPOST_IOC_POST_SEND, t->a.qp, block,
			      n * sizeof(*block), n, &posted);
		if (ret && ret != -EINVAL)
			return ret;
		for (i = 0; i < posted; i++) {
			if (rp_wait_cq(&t->a.cq, &wc) != 1)
				return -ETIME;
			if (wc.status == RPOST_WC_SUCCESS)
				return -EPROTO;
		}
		done += posted;
		if (ret) {
			good++;
			done++;
		}
	}
	return good;
}

/*
 * An atomic operation takes one entry.  With two, the post is EINVAL if the key
 * of the first is valid; if it is not, the post succeeds and the request fails,
 * because the device stops at the first bad entry.  In the error state, this
 * tests a key without losing a connection.  Among all variants of the 64
 * neighbours on each side, and the lowest and highest keys, only the attacker's
 * own may be valid.
 */
TEST_F(many, guessed)
{
	struct attack *t = &self->t;
	const uint32_t own = t->mr.lkey & ~0xff;

	ASSERT_EQ(0, rp_move(&t->a, RPOST_QPS_ERR));
	/* The right key is the one that makes the post EINVAL. */
	EXPECT_EQ(1, try_keys(t, t->mr.lkey, 1));
	EXPECT_EQ(0, try_keys(t, t->ro.lkey, 1));
	EXPECT_EQ(0, try_keys(t, t->other.lkey, 1));
	EXPECT_EQ(0, try_keys(t, t->victim_mr.lkey, 1));
	EXPECT_EQ(1, try_keys(t, own - 64 * 0x100, 129 * 0x100));
	EXPECT_EQ(0, try_keys(t, 0, 0x400));
	EXPECT_EQ(0, try_keys(t, -0x400, 0x400));
	EXPECT_TRUE(untouched(t));
}

TEST_HARNESS_MAIN
