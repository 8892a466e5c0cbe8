// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A path record for RPOST_OPTION_IB_PATH.
 */
#define _GNU_SOURCE
#include "path.h"

/* Pack a path record in its wire format from the addresses of an id. */
void rp_pack_path(struct ib_path_rec_data *data, const uint8_t *dgid,
		  const uint8_t *sgid)
{
	uint8_t *p = (uint8_t *)data->path_rec;

	memset(data, 0, sizeof(*data));
	data->flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	memcpy(p + 8, dgid, 16);
	memcpy(p + 24, sgid, 16);
	p[47] = 64;		/* hop limit */
	p[49] = 0x81;		/* reversible, one path */
	p[50] = 0xff;		/* partition */
	p[51] = 0xff;
	p[54] = 0x80 | 3;	/* exactly 1024 bytes */
	p[55] = 0x80 | 3;	/* exactly 10 Gbit/s */
	p[56] = 0x80 | 18;
}

int rp_set_path(struct rp_end *end, const void *data, uint32_t bytes)
{
	struct rpost_set_option cmd = {
		.size = sizeof(cmd),
		.id = end->id,
		.level = RPOST_OPTION_IB,
		.option = RPOST_OPTION_IB_PATH,
		.data = (uintptr_t)data,
		.data_len = bytes,
	};

	return rp_ioctl(end->fd, RPOST_IOC_SET_OPTION, &cmd);
}
