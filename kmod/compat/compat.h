/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels.  Nothing else in the module knows a version.
 */
#ifndef RPOST_COMPAT_H
#define RPOST_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

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

#endif /* RPOST_COMPAT_H */
