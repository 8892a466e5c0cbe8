// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests queue pairs that the program brings up itself: their states and
 * attributes.  A failure means that an invalid transition or attribute is
 * accepted, or a valid one refused.
 */
#include <kselftest_harness.h>
#include <grp.h>
#include <sys/wait.h>

#include "rpost_own.h"

#define NOBODY	65534

FIXTURE(own) {
	struct rp_end e;
	struct rpost_ah_attr ah;
	struct rpost_query_device dev;
	struct rpost_query_port port;
};

FIXTURE_VARIANT(own) {
	uint32_t type;
};

FIXTURE_VARIANT_ADD(own, rc) { .type = RPOST_QPT_RC };
FIXTURE_VARIANT_ADD(own, uc) { .type = RPOST_QPT_UC };
FIXTURE_VARIANT_ADD(own, ud) { .type = RPOST_QPT_UD };

FIXTURE_SETUP(own)
{
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_own_addr(&self->e, &self->ah));
	ASSERT_EQ(0, rp_create_own(&self->e, variant->type, 0));
	ASSERT_EQ(0, rp_query_device(self->e.fd, self->e.device, &self->dev));
	ASSERT_EQ(0, rp_query_port(self->e.fd, self->e.device, self->ah.port_num, &self->port));
}

FIXTURE_TEARDOWN(own)
{
	rp_end_close(&self->e);
}

/* Bring the queue pair up to a state that exists for all types. */
static int up_to(FIXTURE_DATA(own) *self, uint32_t type, uint32_t state)
{
	struct rpost_qp_attr attr;

	if (state >= RPOST_QPS_INIT) {
		attr = rp_init_attr(type, self->ah.port_num);
		RP_TRY(rp_modify(&self->e, &attr));
	}
	if (state >= RPOST_QPS_RTR) {
		attr = rp_rtr_attr(type, &self->ah, self->e.qp_num);
		RP_TRY(rp_modify(&self->e, &attr));
	}
	if (state >= RPOST_QPS_RTS) {
		attr = rp_rts_attr(type);
		RP_TRY(rp_modify(&self->e, &attr));
	}
	return 0;
}

TEST_F(own, starts_in_reset)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, NULL, 0, 0);
	struct rpost_query_qp q;

	ASSERT_EQ(0, rp_query_qp(&self->e, &q));
	EXPECT_EQ(RPOST_QPS_RESET, q.attr.qp_state);
	EXPECT_EQ(variant->type, q.qp_type);
	EXPECT_EQ(-EINVAL, rp_post_recv(&self->e, 1, NULL, 0, 0));
	EXPECT_EQ(-EINVAL, rp_post_send(&self->e, &send));
	ASSERT_EQ(0, up_to(self, variant->type, RPOST_QPS_INIT));
	EXPECT_EQ(0, rp_post_recv(&self->e, 1, NULL, 0, 0));
	EXPECT_EQ(-EINVAL, rp_post_send(&self->e, &send));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp));
}

/* All transitions between states without any other attribute. */
TEST_F(own, transitions_need_attributes)
{
	const struct rpost_qp_attr base = { .attr_mask = RPOST_QP_STATE };
	struct rpost_qp_attr attr;
	uint32_t from, to;

	for (from = RPOST_QPS_RESET; from <= RPOST_QPS_RTS; from++) {
		for (to = 0; to <= RPOST_QPS_ERR; to++) {
			if (to == RPOST_QPS_RESET || to == RPOST_QPS_ERR ||
			    to == from || to == RPOST_QPS_SQD)
				continue;
			/* INIT to RTR needs no attributes for UD. */
			if (variant->type == RPOST_QPT_UD &&
			    from == RPOST_QPS_INIT && to == RPOST_QPS_RTR)
				continue;
			ASSERT_EQ(0, rp_move(&self->e, RPOST_QPS_RESET));
			ASSERT_EQ(0, up_to(self, variant->type, from));
			attr = base;
			attr.qp_state = to;
			EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
				TH_LOG("%u to %u", from, to);
			EXPECT_EQ((int)from, rp_qp_state(&self->e));
		}
	}
	/* States that do not exist. */
	attr = base;
	for (to = 7; to; to <<= 1) {
		attr.qp_state = to;
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
			TH_LOG("state %u", to);
	}
	/* Another attribute besides the state in a move to RESET. */
	attr = base;
	attr.attr_mask |= RPOST_QP_PORT;
	attr.port_num = self->ah.port_num;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	attr.attr_mask = RPOST_QP_STATE | RPOST_QP_CUR_STATE;
	attr.cur_qp_state = RPOST_QPS_SQE;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&self->e));
	/* The current state in the command differs from the real one. */
	attr = rp_init_attr(variant->type, self->ah.port_num);
	attr.attr_mask |= RPOST_QP_CUR_STATE;
	attr.cur_qp_state = RPOST_QPS_RTS;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&self->e));
	/* A wrong current state must not allow a transition. */
	ASSERT_EQ(0, rp_move(&self->e, RPOST_QPS_RESET));
	attr = rp_rts_attr(variant->type);
	attr.attr_mask |= RPOST_QP_CUR_STATE;
	attr.cur_qp_state = RPOST_QPS_RTR;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	attr.cur_qp_state = RPOST_QPS_SQD;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
}

/* Each transition with an attribute missing, and with one too many. */
TEST_F(own, attributes_of_a_transition)
{
	struct rpost_qp_attr good, attr;
	unsigned int state, bit;
	uint32_t mask;

	for (state = RPOST_QPS_INIT; state <= RPOST_QPS_RTS; state++) {
		good = state == RPOST_QPS_INIT ?
		       rp_init_attr(variant->type, self->ah.port_num) :
		       state == RPOST_QPS_RTR ?
		       rp_rtr_attr(variant->type, &self->ah, self->e.qp_num) :
		       rp_rts_attr(variant->type);
		for (bit = 0; bit < 32; bit++) {
			attr = good;
			mask = 1u << bit;
			if (mask == RPOST_QP_STATE)
				continue;
			if (good.attr_mask & mask)
				attr.attr_mask &= ~mask;
			else if (mask == RPOST_QP_EN_SQD_ASYNC_NOTIFY ||
				 mask == RPOST_QP_RATE_LIMIT ||
				 (state == RPOST_QPS_INIT &&
				  mask == RPOST_QP_DEST_QPN))
				attr.attr_mask |= mask;
			else
				continue;
			/* A device may lack rate limits. */
			EXPECT_EQ(mask == RPOST_QP_RATE_LIMIT ? -EOPNOTSUPP :
								-EINVAL,
				  rp_modify(&self->e, &attr))
				TH_LOG("state %u without or with %#x", state,
				       mask);
			EXPECT_EQ((int)state - 1, rp_qp_state(&self->e));
		}
		ASSERT_EQ(0, rp_modify(&self->e, &good));
		EXPECT_EQ((int)state, rp_qp_state(&self->e));
	}
}

/* Attribute bits that verbs do not define or that a program may not set. */
TEST_F(own, unknown_attributes)
{
	const uint32_t known = 0x21fffff & ~0x080000u;
	struct rpost_qp_attr attr;
	struct rpost_modify_qp cmd;
	unsigned int bit, i;

	for (bit = 0; bit < 32; bit++) {
		attr = rp_init_attr(variant->type, self->ah.port_num);
		attr.attr_mask |= 1u << bit;
		if (!(known & 1u << bit))
			EXPECT_EQ(-EOPNOTSUPP, rp_modify(&self->e, &attr))
				TH_LOG("mask %#x", attr.attr_mask);
	}
	attr.attr_mask = UINT32_MAX;
	EXPECT_EQ(-EOPNOTSUPP, rp_modify(&self->e, &attr));
	for (i = 0; i < sizeof(attr.reserved); i++) {
		attr = rp_init_attr(variant->type, self->ah.port_num);
		attr.reserved[i] = 1;
		EXPECT_EQ(-EOPNOTSUPP, rp_modify(&self->e, &attr));
	}
	cmd = (struct rpost_modify_qp) {
		.size = sizeof(cmd),
		.handle = self->e.qp,
		.reserved = 1,
		.attr = rp_init_attr(variant->type, self->ah.port_num),
	};
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->e.fd, RPOST_IOC_MODIFY_QP, &cmd));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
}

TEST_F(own, ports_and_indices)
{
	const struct rpost_qp_attr good = rp_init_attr(variant->type,
						       self->ah.port_num);
	const uint8_t ports[] = { 0, self->dev.phys_port_cnt + 1, 255 };
	const uint16_t pkeys[] = { self->port.pkey_tbl_len, 0x8000, 0xffff };
	struct rpost_qp_attr attr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		attr = good;
		attr.port_num = ports[i];
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
			TH_LOG("port %u", ports[i]);
		/* The failed command leaves the state as it was. */
		EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
	}
	for (i = 0; i < ARRAY_SIZE(pkeys); i++) {
		attr = good;
		attr.pkey_index = pkeys[i];
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
			TH_LOG("P_Key index %u", pkeys[i]);
		EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
	}
	if (variant->type == RPOST_QPT_UD)
		return;
	/* An access right that does not exist. */
	attr = good;
	attr.access = 0x80000000;
	EXPECT_GT(0, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
}

TEST_F(own, addresses)
{
	struct rpost_qp_attr good, attr;
	struct rpost_ah_attr ah;
	unsigned int i;

	if (variant->type == RPOST_QPT_UD)
		SKIP(return, "datagram queue pairs have no address");
	ASSERT_EQ(0, up_to(self, variant->type, RPOST_QPS_INIT));
	good = rp_rtr_attr(variant->type, &self->ah, 1);
#define REFUSED(err, field, value) do {					\
	attr = good;							\
	attr.field = (value);						\
	EXPECT_EQ(err, rp_modify(&self->e, &attr))			\
		TH_LOG(#field " = " #value);				\
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));		\
} while (0)
	REFUSED(-EINVAL, ah.sgid_index, 255);
	REFUSED(-EINVAL, ah.port_num, 0);
	REFUSED(-EINVAL, ah.port_num, 255);
	REFUSED(-EINVAL, ah.is_global, 2);
	REFUSED(-EOPNOTSUPP, ah.reserved[0], 1);
	REFUSED(-EOPNOTSUPP, ah.reserved[1], 1);
	REFUSED(-EINVAL, path_mtu, 0);
	REFUSED(-EINVAL, path_mtu, 6);
	REFUSED(-EINVAL, path_mtu, UINT32_MAX);
#undef REFUSED
	if (self->port.link_layer == 2) {
		/* Neither a GID nor an Ethernet address. */
		attr = good;
		attr.ah.is_global = 0;
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
		attr = good;
		memset(attr.ah.dgid, 0, sizeof(attr.ah.dgid));
		EXPECT_GT(0, rp_modify(&self->e, &attr));
		EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));
	}
	/* Entries of the GID table that are not valid. */
	for (i = 0; i < self->port.gid_tbl_len && i < 256; i++) {
		struct rpost_gid gid;
		uint32_t count = 1;

		if (!rp_query_gids(self->e.fd, self->e.device,
				   self->ah.port_num, i, &gid, &count) &&
		    count && gid.index == i)
			continue;
		ah = self->ah;
		ah.sgid_index = i;
		attr = rp_rtr_attr(variant->type, &ah, 1);
		EXPECT_GT(0, rp_modify(&self->e, &attr))
			TH_LOG("GID %u", i);
		break;
	}
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));
	ASSERT_EQ(0, rp_modify(&self->e, &good));
}

/* Values whose bit is not in the mask are ignored. */
TEST_F(own, values_without_their_bit)
{
	struct rpost_qp_attr attr = rp_init_attr(variant->type,
						 self->ah.port_num), fill;

	memset(&fill, 0xff, sizeof(fill));
	memset(fill.reserved, 0, sizeof(fill.reserved));
	memset(&fill.ah, 0, sizeof(fill.ah));
	memset(&fill.alt_ah, 0, sizeof(fill.alt_ah));
	fill.attr_mask = attr.attr_mask;
	fill.qp_state = attr.qp_state;
	fill.pkey_index = attr.pkey_index;
	fill.port_num = attr.port_num;
	fill.qkey = attr.qkey;
	fill.access = attr.access;
	EXPECT_EQ(0, rp_modify(&self->e, &fill));
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));
}

TEST_F(own, destroyed)
{
	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp));
	EXPECT_EQ(-ENOENT, rp_move(&self->e, RPOST_QPS_ERR));
}

/* Creation with fields missing, and with fields too many. */
TEST_F(own, creation)
{
	struct rpost_create_qp cmd, good = {
		.size = sizeof(good),
		.pd = self->e.pd,
		.send_cq = self->e.cq.cmd.handle,
		.recv_cq = self->e.cq.cmd.handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = variant->type,
	};
	const uint32_t types[] = { 1, 5, 6, 8, 9, 0xff, 0x100, UINT32_MAX };
	int objects = rp_num_objects(self->e.fd);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		cmd = good;
		cmd.qp_type = types[i];
		EXPECT_EQ(-EINVAL, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP,
					    &cmd))
			TH_LOG("type %u", types[i]);
	}
	EXPECT_EQ(objects, rp_num_objects(self->e.fd));
	cmd = good;
	ASSERT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
	EXPECT_EQ(-EBUSY, rp_destroy(self->e.fd, RPOST_OBJ_PD, self->e.pd));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, cmd.handle));
}

/* An id can have only an RC queue pair. */
TEST_F(own, type_of_an_id)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.pd = self->e.pd,
		.send_cq = self->e.cq.cmd.handle,
		.recv_cq = self->e.cq.cmd.handle,
		.qp_type = variant->type,
	};

	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &cmd.id));
	ASSERT_EQ(0, rp_bind(self->e.fd, cmd.id, 0));
	EXPECT_EQ(variant->type == RPOST_QPT_RC ? 0 : -EINVAL,
		  rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
}

/* ---------------------------------------------------- the id's queue pair */

/* Send an empty message each way. */
static int exchange_empty(struct rp_end *a, struct rp_end *b)
{
	struct rp_end *ends[] = { a, b };
	struct rp_send send;
	struct rpost_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		RP_TRY(rp_post_recv(ends[!i], 1, NULL, 0, 0));
		send = rp_send(RPOST_WR_SEND, 2, NULL, 0, 0);
		RP_TRY(rp_post_send(ends[i], &send));
		RP_TRY(rp_wait_cq(&ends[i]->cq, &wc) != 1 || wc.status || wc.wr_id != 2);
		RP_TRY(rp_wait_cq(&ends[!i]->cq, &wc) != 1 || wc.status || wc.wr_id != 1);
	}
	return 0;
}

/* Go on from SQD, which a device can refuse while it drains the queue. */
static int go_on(struct rp_end *end)
{
	uint64_t last = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	do {
		ret = rp_move(end, RPOST_QPS_RTS);
	} while (ret == -EINVAL && rp_now_ms() < last);
	return ret;
}

/* The connection manager brings the queue pair up; then the program may pause it. */
TEST(state_of_an_ids_queue_pair)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	struct rp_send send;
	struct rpost_wc wc;
	struct rp_end c, s;
	unsigned int i;

	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	ASSERT_EQ(0, rp_own_addr(&c, &ah));
	EXPECT_EQ(-EINVAL, rp_move(&c, RPOST_QPS_INIT));
	EXPECT_EQ(-EINVAL, rp_move(&c, RPOST_QPS_RTR));
	EXPECT_EQ(-EINVAL, rp_move(&c, RPOST_QPS_SQE));
	attr = rp_rts_attr(RPOST_QPT_RC);
	EXPECT_EQ(-EINVAL, rp_modify(&c, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, &ah, 1);
	EXPECT_EQ(-EINVAL, rp_modify(&c, &attr));
	/* An attribute that may change in RTS, with the state and without. */
	attr = (struct rpost_qp_attr) {
		.attr_mask = RPOST_QP_MIN_RNR_TIMER, .min_rnr_timer = 5,
	};
	EXPECT_EQ(0, rp_modify(&c, &attr));
	attr.attr_mask |= RPOST_QP_STATE;
	attr.qp_state = RPOST_QPS_RTS;
	EXPECT_EQ(0, rp_modify(&c, &attr));
	/* An attribute that may not change in RTS. */
	attr = (struct rpost_qp_attr) {
		.attr_mask = RPOST_QP_DEST_QPN, .dest_qp_num = 1,
	};
	EXPECT_EQ(-EINVAL, rp_modify(&c, &attr));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&c));
	EXPECT_EQ(0, exchange_empty(&c, &s));

	/* Sends posted in SQD go out in RTS; rxe waits for the next post. */
	ASSERT_EQ(0, rp_move(&c, RPOST_QPS_SQD));
	EXPECT_EQ(RPOST_QPS_SQD, rp_qp_state(&c));
	send = rp_send(RPOST_WR_SEND, 8, NULL, 0, 0);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, rp_post_recv(&s, 7, NULL, 0, 0));
		ASSERT_EQ(0, rp_post_send(&c, &send));
		ASSERT_EQ(0, go_on(&c));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, rp_wait_cq(&s.cq, &wc));
		EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
		ASSERT_EQ(1, rp_wait_cq(&c.cq, &wc));
		EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
	}

	ASSERT_EQ(0, rp_post_recv(&c, 9, NULL, 0, 0));
	ASSERT_EQ(0, rp_move(&c, RPOST_QPS_ERR));
	ASSERT_EQ(1, rp_wait_cq(&c.cq, &wc));
	EXPECT_EQ(9, wc.wr_id);
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(RPOST_QPS_ERR, rp_qp_state(&c));
	EXPECT_EQ(-EINVAL, rp_move(&c, RPOST_QPS_RTS));
	/* The connection can still be ended. */
	EXPECT_EQ(0, rp_disconnect(c.fd, c.id));
	EXPECT_EQ(0, rp_expect(s.channel, s.id, RPOST_EVENT_DISCONNECTED));
	rp_end_close(&c);
	rp_end_close(&s);
}

/* From RESET on the program moves it, before and after the end of the connection. */
TEST(ids_queue_pair_used_again)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 3, NULL, 0, 0);
	struct rpost_wc wc;
	struct rp_end c, s;
	unsigned int i;

	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, exchange_empty(&c, &s));
		ASSERT_EQ(0, rp_post_recv(&c, 9, NULL, 0, 0));
		ASSERT_EQ(0, rp_move(&c, i ? RPOST_QPS_RESET : RPOST_QPS_ERR));
		ASSERT_EQ(0, rp_move(&c, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_move(&s, RPOST_QPS_RESET));
		EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&c));
		/* Earlier work requests have no completions, and posts fail. */
		EXPECT_EQ(0, rp_poll_cq(&c.cq, &wc));
		EXPECT_EQ(-EINVAL, rp_post_recv(&c, 1, NULL, 0, 0));
		EXPECT_EQ(-EINVAL, rp_post_send(&c, &send));
		ASSERT_EQ(0, rp_bring_up(&c, RPOST_QPT_RC, s.qp_num));
		ASSERT_EQ(0, rp_bring_up(&s, RPOST_QPT_RC, c.qp_num));
		if (i)
			break;
		/* The end of the connection stops the queue pair, whoever has moved it. */
		ASSERT_EQ(0, exchange_empty(&s, &c));
		EXPECT_EQ(0, rp_disconnect(c.fd, c.id));
		EXPECT_EQ(RPOST_QPS_ERR, rp_qp_state(&c));
		EXPECT_EQ(0, rp_expect(s.channel, s.id, RPOST_EVENT_DISCONNECTED));
		EXPECT_EQ(0, rp_disconnect(s.fd, s.id));
		EXPECT_EQ(0, rp_expect(c.channel, c.id, RPOST_EVENT_DISCONNECTED));
		ASSERT_EQ(0, rp_move(&c, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_move(&s, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&c, RPOST_QPT_RC, s.qp_num));
		ASSERT_EQ(0, rp_bring_up(&s, RPOST_QPT_RC, c.qp_num));
	}
	EXPECT_EQ(0, exchange_empty(&s, &c));
	rp_end_close(&c);
	rp_end_close(&s);
}

/* As long as the connection manager may move it, the program may only stop it. */
TEST(ids_queue_pair_before_the_connection)
{
	struct rp_end e;

	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, rp_create_id(e.fd, e.channel, &e.id));
	ASSERT_EQ(0, rp_bind(e.fd, e.id, 0));
	ASSERT_EQ(0, rp_create_qp(&e, 0));
	EXPECT_EQ(-EINVAL, rp_move(&e, RPOST_QPS_RESET));
	EXPECT_EQ(-EINVAL, rp_move(&e, RPOST_QPS_INIT));
	ASSERT_EQ(0, rp_move(&e, RPOST_QPS_ERR));
	EXPECT_EQ(-EINVAL, rp_move(&e, RPOST_QPS_RESET));
	EXPECT_EQ(RPOST_QPS_ERR, rp_qp_state(&e));
	rp_end_close(&e);
}

/* The program moves an unconnected queue pair with receives to ERR. */
TEST(error_before_the_connection)
{
	struct rp_end e;
	struct rpost_wc wc;

	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, rp_create_id(e.fd, e.channel, &e.id));
	ASSERT_EQ(0, rp_bind(e.fd, e.id, 0));
	ASSERT_EQ(0, rp_create_qp(&e, 0));
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&e));
	ASSERT_EQ(0, rp_post_recv(&e, 3, NULL, 0, 0));
	ASSERT_EQ(0, rp_move(&e, RPOST_QPS_ERR));
	ASSERT_EQ(1, rp_wait_cq(&e.cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(0, rp_destroy(e.fd, RPOST_OBJ_QP, e.qp));
	EXPECT_EQ(0, rp_destroy(e.fd, RPOST_OBJ_ID, e.id));
	rp_end_close(&e);
}

/* ------------------------------------------------------ privileged keys */

/* Run as nobody: privileged Q_Keys must be refused, others accepted. */
static int try_qkeys(void)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	struct rp_end e;

	RP_TRY(rp_end_init(&e));
	RP_TRY(rp_own_addr(&e, &ah));
	RP_TRY(rp_create_own(&e, RPOST_QPT_UD, 0));
	attr = rp_init_attr(RPOST_QPT_UD, ah.port_num);
	attr.qkey = 0x80000000;
	if (rp_modify(&e, &attr) != -EPERM)
		return 10;
	attr.qkey = 0x80010000;
	if (rp_modify(&e, &attr) != -EPERM)
		return 11;
	attr.qkey = UINT32_MAX;
	if (rp_modify(&e, &attr) != -EPERM)
		return 12;
	if (rp_qp_state(&e) != RPOST_QPS_RESET)
		return 13;
	attr.qkey = 0x7fffffff;
	RP_TRY(rp_modify(&e, &attr));
	/* A later change of the Q_Key is refused, too. */
	attr = (struct rpost_qp_attr) {
		.attr_mask = RPOST_QP_QKEY, .qkey = 0x80000001,
	};
	if (rp_modify(&e, &attr) != -EPERM)
		return 14;
	attr.qkey = 0x11;
	RP_TRY(rp_modify(&e, &attr));
	return 0;
}

TEST(privileged_queue_keys)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	int status = -1, ret;
	struct rp_end e;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		ret = try_qkeys();
		_exit(ret < 0 ? 99 : ret);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status >> 8);
	/* With the capability, a privileged Q_Key is accepted. */
	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, rp_own_addr(&e, &ah));
	ASSERT_EQ(0, rp_create_own(&e, RPOST_QPT_UD, 0));
	attr = rp_init_attr(RPOST_QPT_UD, ah.port_num);
	attr.qkey = 0x80000000;
	EXPECT_EQ(0, rp_modify(&e, &attr));
	rp_end_close(&e);
}

TEST_HARNESS_MAIN
