/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels.  Nothing else in the module knows a version.
 */
#ifndef RPOST_COMPAT_H
#define RPOST_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

/* 6.3 made vm_flags read-only but for its accessors. */
static inline void rpost_compat_vm_flags_mod(struct vm_area_struct *vma,
					     vm_flags_t set, vm_flags_t clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

static inline struct ib_mr *rpost_compat_reg_user_mr(struct ib_pd *pd, u64 addr,
						     u64 length, u64 iova,
						     int access)
{
	return ib_reg_user_mr(pd, addr, length, iova, access);
}

#endif /* RPOST_COMPAT_H */
