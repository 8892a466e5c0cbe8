// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests registration of every kind of memory: it must succeed, or fail with the
 * same errno, over both libraries. One kind differs, see memory_kinds.h.
 */
#include <kselftest_harness.h>

#include "../lib/kernel_release.h"
#include "../lib/memory_kinds.h"
#include "rdma_test.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_WRITE)

FIXTURE(kind) {
	struct pair p;
	struct ibv_pd *pd;
	bool huge;
};

FIXTURE_VARIANT(kind) {
	struct kind kind;
};

KINDS(KIND_VARIANT)

FIXTURE_SETUP(kind)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	ASSERT_EQ(0, pair_listen(&self->p, &opts));
	self->pd = ibv_alloc_pd(self->p.listen->verbs);
	ASSERT_NE(NULL, self->pd);
	if (kind_is_huge(&variant->kind))
		self->huge = huge_pages(1);
}

FIXTURE_TEARDOWN(kind)
{
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	pair_close(&self->p);
	if (self->huge)
		huge_pages(-1);
}

static void try_access(struct __test_metadata *_metadata,
		       FIXTURE_DATA(kind) *self, void *mem, size_t bytes,
		       int access, int want)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(self->pd, mem, bytes, access);
	if (want) {
		EXPECT_EQ(NULL, mr);
		EXPECT_EQ(want, errno);
	} else {
		ASSERT_NE(NULL, mr) TH_LOG("errno %d", errno);
	}
	if (mr)
		EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(kind, registered)
{
	const struct kind *k = &variant->kind;
	const char *reason = "";
	char *mem = k->make(k->bytes, &reason);
	int write = kind_errno(k, true);

	if (!mem)
		SKIP(return, "%s", reason);
	if (k->make == kind_file_shared && over_incumbent() && kernel_release() < 6005)
		write = 0;
	try_access(_metadata, self, mem, k->bytes, IBV_ACCESS_REMOTE_READ,
		   kind_errno(k, false));
	try_access(_metadata, self, mem, k->bytes, 0, kind_errno(k, false));
	try_access(_metadata, self, mem, k->bytes, RIGHTS, write);
	if (self->huge)
		munmap(mem, k->bytes);
}

TEST_HARNESS_MAIN
