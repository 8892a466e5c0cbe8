/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A path record for RPOST_OPTION_IB_PATH.
 */
#ifndef RPOST_PATH_H
#define RPOST_PATH_H

#include <rdma/ib_user_sa.h>

#include "rpost_test.h"

void rp_pack_path(struct ib_path_rec_data *data, const uint8_t *dgid,
		  const uint8_t *sgid);
int rp_set_path(struct rp_end *end, const void *data, uint32_t bytes);

#endif /* RPOST_PATH_H */
