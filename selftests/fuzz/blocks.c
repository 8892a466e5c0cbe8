// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls that build memory for later commands: blocks of work requests, and
 * path records.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"

struct wr_args {
	struct rpost_send_wr wr;
	struct rpost_recv_wr recv;
	struct rpost_sge sge[2];
	uint64_t num_sge;
	uint64_t inline_len;
	uint64_t size;
	uint64_t data;
};

static void *block_room(struct context *c, uint32_t bytes)
{
	char *to = c->block + c->block_len;

	if (c->block_len + bytes > BLOCK_BYTES / 2 - sizeof(struct rpost_post))
		return NULL;
	memset(to, 0, bytes);
	c->block_len += bytes;
	return to;
}

static long run_send_wr(struct context *c, void *arg)
{
	struct wr_args *a = arg;
	bool is_inline = a->wr.send_flags & RPOST_SEND_INLINE;
	uint32_t data = is_inline ? (a->inline_len & 0x1fff) :
				    2 * sizeof(a->sge[0]);
	uint32_t bytes = sizeof(a->wr) + ((data + 7) & ~7);
	struct rpost_send_wr *wr;

	if (!is_inline)
		bytes = sizeof(a->wr) +
			(a->num_sge < 3 ? a->num_sge : 2) * sizeof(a->sge[0]);
	wr = block_room(c, bytes);
	if (!wr)
		return -ENOSPC;
	*wr = a->wr;
	wr->size = a->size ? a->size : bytes;
	wr->num_sge = a->num_sge;
	wr->inline_len = a->inline_len;
	if (is_inline)
		memset(wr + 1, a->data, data);
	else
		memcpy(wr + 1, a->sge, bytes - sizeof(*wr));
	return 0;
}

static long run_recv_wr(struct context *c, void *arg)
{
	struct wr_args *a = arg;
	uint32_t n = a->num_sge < 3 ? a->num_sge : 2;
	uint32_t bytes = sizeof(a->recv) + n * sizeof(a->sge[0]);
	struct rpost_recv_wr *wr = block_room(c, bytes);

	if (!wr)
		return -ENOSPC;
	*wr = a->recv;
	wr->size = a->size ? a->size : bytes;
	wr->num_sge = a->num_sge;
	memcpy(wr + 1, a->sge, n * sizeof(a->sge[0]));
	return 0;
}

#define SGES								\
	INT(wr_args, num_sge, 3),					\
	INT(wr_args, size, 128),					\
	SPACE(wr_args, sge[0].addr, K_ADDR),				\
	INT(wr_args, sge[0].length, 0x4000),				\
	IN(wr_args, sge[0].lkey, R_LKEY),				\
	SPACE(wr_args, sge[1].addr, K_ADDR),				\
	INT(wr_args, sge[1].length, 0x4000),				\
	IN(wr_args, sge[1].lkey, R_LKEY)

#define SEND_COMMON							\
	INT(wr_args, wr.wr_id, 0),					\
	INT(wr_args, wr.opcode, 11),					\
	FLAGS(wr_args, wr.send_flags, 15),				\
	INT(wr_args, wr.imm_data, 2),					\
	FIELD(wr_args, wr.reserved, K_ZERO, R_NONE, 0),			\
	INT(wr_args, inline_len, 300),					\
	INT(wr_args, data, 255),					\
	SGES

static const struct field send_wr[] = {
	SEND_COMMON,
	IN(wr_args, wr.rkey, R_RKEY),
	SPACE(wr_args, wr.remote_addr, K_ADDR),
	INT(wr_args, wr.compare_add, 2),
	INT(wr_args, wr.swap, 2),
};
static const struct field datagram_wr[] = {
	SEND_COMMON,
	IN(wr_args, wr.ah, R_AH),
	IN(wr_args, wr.remote_qpn, R_QPN),
	INT(wr_args, wr.remote_qkey, 0),
};
static const struct field recv_wr[] = {
	INT(wr_args, recv.wr_id, 0),
	SGES,
};

/* ---------------------------------------------------------- path records */

/* Like struct ib_path_rec_data of <rdma/ib_user_sa.h>, from its start. */
struct path_args {
	uint32_t flags;
	uint32_t reserved;
	uint8_t head[8];	/* service id */
	uint8_t dgid[16];
	uint8_t sgid[16];
	uint8_t dlid[2];
	uint8_t slid[2];
	uint8_t hop_flow[4];
	uint8_t tclass;
	uint8_t reversible_numb;
	uint8_t pkey[2];
	uint8_t qos_sl[2];
	uint8_t mtu;
	uint8_t rate;
	uint8_t life;
	uint8_t preference;
	uint8_t tail[6];
};

static long run_path_rec(struct context *c, void *arg)
{
	(void)c;
	memcpy((void *)MEM_ADDR, arg, sizeof(struct path_args));
	return 0;
}

static const struct field path_rec[] = {
	FLAGS(path_args, flags, 0x3f),
	SPACE(path_args, dgid, K_GID),
	SPACE(path_args, sgid, K_GID),
	SPACE(path_args, dlid, K_BYTES),
	SPACE(path_args, pkey, K_BYTES),
	SPACE(path_args, hop_flow, K_BYTES),
	INT(path_args, reversible_numb, 255),
	SPACE(path_args, qos_sl, K_BYTES),
	INT(path_args, mtu, 255),
	INT(path_args, rate, 255),
	INT(path_args, life, 255),
};

const struct desc blocks[] = {
	RUN("send_wr", wr_args, run_send_wr, send_wr, 8),
	RUN("datagram_wr", wr_args, run_send_wr, datagram_wr, 5),
	RUN("recv_wr", wr_args, run_recv_wr, recv_wr, 6),
	RUN("path_rec", path_args, run_path_rec, path_rec, 2),
};

const unsigned int num_blocks = sizeof(blocks) / sizeof(blocks[0]);
