/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels.  No other file of rdmasim checks the version.
 */
#ifndef SIM_COMPAT_H
#define SIM_COMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/* 6.11 replaced the udata argument of create_cq() by the attribute bundle. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define sim_compat_cq_udata	struct uverbs_attr_bundle
#else
#define sim_compat_cq_udata	struct ib_udata
#endif

/* 6.17 added the handle of a DMA hint. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define SIM_COMPAT_DMAH_ARG	struct ib_dmah *dmah,
#define sim_compat_has_dmah(dmah) ((dmah) != NULL)
#else
#define SIM_COMPAT_DMAH_ARG
#define sim_compat_has_dmah(dmah) false
#endif

/* 7.2 renamed ib_umem_get(). */
static inline struct ib_umem *sim_compat_umem_get(struct ib_device *ib_dev,
						  u64 addr, u64 length,
						  int access)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	return ib_umem_get_va(ib_dev, addr, length, access);
#else
	return ib_umem_get(ib_dev, addr, length, access);
#endif
}

#endif /* SIM_COMPAT_H */
