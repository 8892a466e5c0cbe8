// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every place for a handle or a channel in every command, with everything that
 * does not belong there: objects of other types and of other files, what has
 * been destroyed, what does not exist, and what another thread is destroying.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "abi_rows.h"

#define TYPES	(RPOST_OBJ_AH + 1)

/* Kinds of channels, beside enum rpost_obj_type. */
#define COMP_FD		100
#define EVENT_FD	101

/* A command's field that names something, and what the command makes of it. */
struct place {
	const char *name;
	unsigned long nr;
	unsigned int offset;
	unsigned int kind;
	unsigned int made_type, made_offset;
	bool optional;	/* 0, or no channel, is fine */
};

#define PLACE(NAME, type, field, what) \
	.name = #NAME "." #field, .nr = RPOST_IOC_##NAME, \
	.offset = offsetof(struct rpost_##type, field), .kind = what
#define MAKES(type, what) \
	.made_type = what, .made_offset = offsetof(struct rpost_##type, handle)

static const struct place places[] = {
	{ PLACE(REG_MR, reg_mr, pd, RPOST_OBJ_PD), MAKES(reg_mr, RPOST_OBJ_MR) },
	{ PLACE(CREATE_SRQ, create_srq, pd, RPOST_OBJ_PD),
	  MAKES(create_srq, RPOST_OBJ_SRQ) },
	{ PLACE(CREATE_AH, create_ah, pd, RPOST_OBJ_PD),
	  MAKES(create_ah, RPOST_OBJ_AH) },
	{ PLACE(CREATE_QP, create_qp, pd, RPOST_OBJ_PD),
	  MAKES(create_qp, RPOST_OBJ_QP) },
	{ PLACE(CREATE_QP, create_qp, send_cq, RPOST_OBJ_CQ),
	  MAKES(create_qp, RPOST_OBJ_QP) },
	{ PLACE(CREATE_QP, create_qp, recv_cq, RPOST_OBJ_CQ),
	  MAKES(create_qp, RPOST_OBJ_QP) },
	{ PLACE(CREATE_QP, create_qp, srq, RPOST_OBJ_SRQ),
	  MAKES(create_qp, RPOST_OBJ_QP), .optional = true },
	{ PLACE(CREATE_QP, create_qp, id, RPOST_OBJ_ID),
	  MAKES(create_qp, RPOST_OBJ_QP), .optional = true },
	{ PLACE(ARM_CQ, arm_cq, handle, RPOST_OBJ_CQ) },
	{ PLACE(POLL_CQ, poll_cq, handle, RPOST_OBJ_CQ) },
	{ PLACE(RESIZE_CQ, resize_cq, handle, RPOST_OBJ_CQ) },
	{ PLACE(QUERY_QP, query_qp, handle, RPOST_OBJ_QP) },
	{ PLACE(MODIFY_QP, modify_qp, handle, RPOST_OBJ_QP) },
	{ PLACE(POST_SEND, post, qp, RPOST_OBJ_QP) },
	{ PLACE(POST_RECV, post, qp, RPOST_OBJ_QP) },
	{ PLACE(ATTACH_MCAST, attach_mcast, qp, RPOST_OBJ_QP) },
	{ PLACE(SETUP_SEND_RING, setup_send_ring, qp, RPOST_OBJ_QP) },
	{ PLACE(ENTER_SEND_RING, enter_send_ring, qp, RPOST_OBJ_QP) },
	{ PLACE(DETACH_MCAST, attach_mcast, qp, RPOST_OBJ_QP) },
	{ PLACE(POST_SRQ_RECV, post, qp, RPOST_OBJ_SRQ) },
	{ PLACE(MODIFY_SRQ, modify_srq, handle, RPOST_OBJ_SRQ) },
	{ PLACE(QUERY_SRQ, query_srq, handle, RPOST_OBJ_SRQ) },
	{ PLACE(BIND_ADDR, bind_addr, id, RPOST_OBJ_ID) },
	{ PLACE(RESOLVE_ADDR, resolve_addr, id, RPOST_OBJ_ID) },
	{ PLACE(RESOLVE_ROUTE, resolve_route, id, RPOST_OBJ_ID) },
	{ PLACE(QUERY_ID, query_id, id, RPOST_OBJ_ID) },
	{ PLACE(LISTEN, listen, id, RPOST_OBJ_ID) },
	{ PLACE(CONNECT, connect, id, RPOST_OBJ_ID) },
	{ PLACE(ACCEPT, accept, id, RPOST_OBJ_ID) },
	{ PLACE(REJECT, reject, id, RPOST_OBJ_ID) },
	{ PLACE(DISCONNECT, disconnect, id, RPOST_OBJ_ID) },
	{ PLACE(MIGRATE_ID, migrate_id, id, RPOST_OBJ_ID) },
	{ PLACE(SET_OPTION, set_option, id, RPOST_OBJ_ID) },
	{ PLACE(NOTIFY, notify, id, RPOST_OBJ_ID) },
	{ PLACE(ESTABLISH, establish, id, RPOST_OBJ_ID) },
	{ PLACE(INIT_QP_ATTR, init_qp_attr, id, RPOST_OBJ_ID) },
	{ PLACE(JOIN_MCAST, join_mcast, id, RPOST_OBJ_ID) },
	{ PLACE(LEAVE_MCAST, leave_mcast, id, RPOST_OBJ_ID) },
	{ PLACE(CREATE_CQ, create_cq, channel_fd, COMP_FD),
	  MAKES(create_cq, RPOST_OBJ_CQ), .optional = true },
	{ PLACE(CREATE_ID, create_id, channel_fd, EVENT_FD),
	  MAKES(create_id, RPOST_OBJ_ID) },
	{ PLACE(MIGRATE_ID, migrate_id, channel_fd, EVENT_FD) },
};

#define for_each_place(p) \
	for (p = places; p < places + ARRAY_SIZE(places); p++)

static const struct row *row_of(const struct place *p)
{
	const struct row *row = rows;

	while (row->nr != p->nr)
		row++;
	return row;
}

/* One object of each type, and channels of all kinds. */
struct zoo {
	struct env env;
	uint32_t handles[TYPES];
	uint32_t ud_qp;
	int comp, async;
};

static int zoo_init(struct zoo *z)
{
	struct rp_end *end = &z->env.end, other;
	struct rpost_create_srq srq;
	struct rpost_reg_mr mr;

	z->env.mem = rp_pages(getpagesize());
	RP_TRY(rp_end_init(end));
	RP_TRY(fcntl(end->channel, F_SETFL, O_NONBLOCK));
	RP_TRY(rp_create_id(end->fd, end->channel, &end->id));
	RP_TRY(rp_bind(end->fd, end->id, 0));
	RP_TRY(rp_create_qp(end, 0));
	RP_TRY(rp_reg_mr(end->fd, end->pd, z->env.mem, 64, 0, &mr));
	RP_TRY(rp_create_srq(end->fd, end->pd, 4, &srq));
	RP_TRY(rp_own_ah(end, &z->handles[RPOST_OBJ_AH]));
	other = *end;
	RP_TRY(rp_create_own(&other, RPOST_QPT_UD, 0));
	z->ud_qp = other.qp;
	z->comp = rp_comp_channel(end->fd);
	z->async = rp_async_channel(end->fd, end->device);
	if (z->comp < 0 || z->async < 0)
		return -EBADF;
	z->handles[RPOST_OBJ_PD] = end->pd;
	z->handles[RPOST_OBJ_MR] = mr.handle;
	z->handles[RPOST_OBJ_CQ] = end->cq.cmd.handle;
	/* Not the one that fill_post() makes anew. */
	z->handles[RPOST_OBJ_QP] = z->ud_qp;
	z->handles[RPOST_OBJ_ID] = end->id;
	z->handles[RPOST_OBJ_SRQ] = srq.handle;
	return 0;
}

static void zoo_close(struct zoo *z)
{
	close(z->comp);
	close(z->async);
	rp_end_close(&z->env.end);
	munmap(z->env.mem, getpagesize());
}

FIXTURE(handles) {
	struct zoo mine, foreign;
	char cmd[512];
};

FIXTURE_SETUP(handles)
{
	ASSERT_EQ(0, zoo_init(&self->mine));
	ASSERT_EQ(0, zoo_init(&self->foreign));
}

FIXTURE_TEARDOWN(handles)
{
	zoo_close(&self->mine);
	zoo_close(&self->foreign);
}

/* Call a command with one field replaced: what it says. */
static int call_with(FIXTURE_DATA(handles) *self, const struct place *p,
		     uint32_t value)
{
	struct env *env = &self->mine.env;
	const struct row *row = row_of(p);
	int objects, ret;

	memset(self->cmd, 0, sizeof(self->cmd));
	if (row->fill(env, self->cmd))
		return -EIO;
	*(uint32_t *)self->cmd = row->size;
	memcpy(self->cmd + p->offset, &value, sizeof(value));
	objects = rp_num_objects(env->end.fd);
	ret = rp_ioctl(env->end.fd, p->nr, self->cmd);
	return ret && objects != rp_num_objects(env->end.fd) ? -EUCLEAN : ret;
}

/*
 * Each place for a handle, with each object of another type, and with handles
 * that name nothing.  Must be ENOENT, and change nothing.
 */
TEST_F(handles, of_other_types)
{
	struct rp_end *end = &self->mine.env.end;
	uint32_t gone, type, i;
	const struct place *p;

	ASSERT_EQ(0, rp_alloc_pd(end->fd, end->device, &gone));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_PD, gone));
	const uint32_t nothing[] = { 0, gone, gone + 100000, INT32_MAX,
				     0x80000000, UINT32_MAX,
				     self->mine.handles[RPOST_OBJ_PD] |
				     0x80000000 };

	for_each_place(p) {
		if (p->kind >= TYPES)
			continue;
		for (type = RPOST_OBJ_PD; type < TYPES; type++) {
			if (type == p->kind)
				continue;
			EXPECT_EQ(-ENOENT, call_with(self, p,
						     self->mine.handles[type]))
				TH_LOG("%s of type %u", p->name, type);
		}
		for (i = 0; i < ARRAY_SIZE(nothing); i++) {
			if (p->optional && !nothing[i])
				continue;
			EXPECT_EQ(-ENOENT, call_with(self, p, nothing[i]))
				TH_LOG("%s %#x", p->name, nothing[i]);
		}
	}
}

/*
 * The same with handles of another open file, larger than all that this one has.
 * Must name nothing here, and change nothing there.
 */
TEST_F(handles, of_another_file)
{
	struct rp_end *end = &self->mine.env.end;
	struct rp_end *foreign = &self->foreign.env.end;
	struct rp_end other = *foreign, ud = *end;
	struct rpost_create_srq srq;
	uint32_t type, handle, ah, tried = 0;
	const struct place *p;
	struct rp_send send;
	int i, objects;

	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, rp_create_id(foreign->fd, foreign->channel,
					  &other.id));
		ASSERT_EQ(0, rp_destroy(foreign->fd, RPOST_OBJ_ID, other.id));
	}
	ASSERT_EQ(0, rp_alloc_pd(foreign->fd, foreign->device, &other.pd));
	ASSERT_EQ(0, rp_create_cq(foreign->fd, foreign->device, 4, -1,
				  &other.cq));
	ASSERT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_srq(foreign->fd, other.pd, 4, &srq));
	ASSERT_EQ(0, rp_create_id(foreign->fd, foreign->channel, &other.id));
	ASSERT_EQ(0, rp_own_ah(&other, &ah));
	const uint32_t handles[TYPES] = {
		[RPOST_OBJ_PD] = other.pd,
		[RPOST_OBJ_CQ] = other.cq.cmd.handle,
		[RPOST_OBJ_QP] = other.qp,
		[RPOST_OBJ_ID] = other.id,
		[RPOST_OBJ_SRQ] = srq.handle,
		[RPOST_OBJ_AH] = ah,
	};

	objects = rp_num_objects(foreign->fd);
	for_each_place(p) {
		handle = p->kind < TYPES ? handles[p->kind] : 0;
		if (!handle)
			continue;
		EXPECT_EQ(-ENOENT, call_with(self, p, handle))
			TH_LOG("%s %u", p->name, handle);
		tried++;
	}
	for (type = RPOST_OBJ_PD; type < TYPES; type++)
		EXPECT_EQ(-ENOENT, rp_destroy(end->fd, type, handles[type]));
	EXPECT_LT(30, tried);
	/* In a work request, where the file's own is taken. */
	ud.qp = self->mine.ud_qp;
	ASSERT_EQ(0, rp_bring_up(&ud, RPOST_QPT_UD, 0));
	send = rp_empty_datagram(ah, RP_NO_QPN, 1);
	EXPECT_EQ(-ENOENT, rp_post_send(&ud, &send));
	send.wr.ah = self->mine.handles[RPOST_OBJ_AH];
	EXPECT_EQ(0, rp_post_send(&ud, &send));
	EXPECT_EQ(objects, rp_num_objects(foreign->fd));
	rp_unmap_cq(&other.cq);
}

/*
 * Each place for a channel, with every other kind of file, and with channels of
 * another open file.  Must be EBADF.
 */
TEST_F(handles, channels)
{
	int null = open("/dev/null", O_RDWR), closed = dup(null), pipes[2];
	struct zoo *z = &self->mine;
	const struct place *p;
	unsigned int i;

	close(closed);
	ASSERT_LE(0, null);
	ASSERT_EQ(0, pipe(pipes));
	const struct {
		int fd;
		unsigned int kind;
	} files[] = {
		{ z->comp, COMP_FD },
		{ z->env.end.channel, EVENT_FD },
		{ z->async, 0 },
		{ z->env.end.fd, 0 },
		{ self->foreign.comp, 0 },
		{ self->foreign.env.end.channel, 0 },
		{ self->foreign.async, 0 },
		{ self->foreign.env.end.fd, 0 },
		{ null, 0 },
		{ pipes[0], 0 },
		{ closed, 0 },
		{ -1, 0 },
		{ -100, 0 },
		{ INT32_MIN, 0 },
		{ INT32_MAX, 0 },
	};

	for_each_place(p) {
		if (p->kind < TYPES)
			continue;
		for (i = 0; i < ARRAY_SIZE(files); i++) {
			if (p->optional && files[i].fd == -1)
				continue;
			EXPECT_EQ(files[i].kind == p->kind ? 0 : -EBADF,
				  call_with(self, p, files[i].fd))
				TH_LOG("%s %u: %d", p->name, i, files[i].fd);
		}
	}
	close(null);
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * Every command on every kind of channel, and an event channel's command on
 * the others.  Must be ENOTTY.
 */
TEST_F(handles, commands_on_channels)
{
	struct zoo *z = &self->mine;
	const int fds[] = { z->comp, z->async, z->env.end.channel,
			    z->env.end.fd };
	const struct row *row;
	unsigned int i;

	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		for (i = 0; i < ARRAY_SIZE(fds); i++) {
			if (fds[i] == (row->nr == RPOST_IOC_GET_EVENT ?
				       z->env.end.channel : z->env.end.fd))
				continue;
			memset(self->cmd, 0, sizeof(self->cmd));
			*(uint32_t *)self->cmd = row->size;
			EXPECT_EQ(-ENOTTY, rp_ioctl(fds[i], row->nr, self->cmd))
				TH_LOG("%s on %u", row->name, i);
		}
	}
}

/*
 * A datagram's address handle, with everything else.  Must be ENOENT; nothing
 * is posted.
 */
TEST_F(handles, address_of_a_datagram)
{
	struct zoo *z = &self->mine;
	struct rp_end ud = z->env.end;
	struct rp_send send;
	uint32_t type, posted;

	ud.qp = z->ud_qp;
	ASSERT_EQ(0, rp_bring_up(&ud, RPOST_QPT_UD, 0));
	for (type = 0; type < TYPES; type++) {
		send = rp_empty_datagram(type == RPOST_OBJ_AH ? UINT32_MAX :
					 z->handles[type], 1, 1);
		EXPECT_EQ(-ENOENT, rp_post(ud.fd, RPOST_IOC_POST_SEND, ud.qp,
					   &send, send.wr.size, 1, &posted))
			TH_LOG("type %u", type);
		EXPECT_EQ(0, posted);
	}
	send = rp_empty_datagram(z->handles[RPOST_OBJ_AH], 1, 1);
	EXPECT_EQ(0, rp_post_send(&ud, &send));
}

/*
 * A connection's queue pair is named by its number: one of another open file,
 * of nobody.  Must be refused, or one could end another's connection.
 */
TEST_F(handles, queue_pair_numbers)
{
	struct rp_end *end = &self->mine.env.end, server;
	const uint32_t numbers[] = { self->foreign.env.end.qp_num, 0, 1,
				     0xffffff, 0x1000000, UINT32_MAX };
	struct rpost_connect cmd = { .size = sizeof(cmd) };
	uint32_t listener;
	unsigned int i;

	ASSERT_EQ(0, rp_end_init(&server));
	ASSERT_EQ(0, rp_listener(&server, &listener));
	ASSERT_EQ(0, fcntl(end->channel, F_SETFL, 0));
	ASSERT_EQ(0, rp_client_route(end, rp_port(server.fd, listener)));
	rp_conn_param(&cmd.param);
	cmd.id = end->id;
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		cmd.param.qp_num = numbers[i];
		EXPECT_GT(0, rp_ioctl(end->fd, RPOST_IOC_CONNECT, &cmd))
			TH_LOG("%#x", numbers[i]);
	}
	EXPECT_TRUE(rp_quiet(server.channel));
	rp_end_close(&server);
}

/* --------------------------------------------- destroyed meanwhile */

struct churn {
	struct zoo *zoo;
	unsigned int type;
	uint32_t handle;
	bool stop;
	int wrong;
};

static int churn_make(struct zoo *z, unsigned int type, uint32_t *handle)
{
	struct rp_end end = z->env.end;
	struct rpost_create_srq srq;
	struct rpost_create_cq cq = { .size = sizeof(cq) };
	int ret;

	switch (type) {
	case RPOST_OBJ_PD:
		return rp_alloc_pd(end.fd, end.device, handle);
	case RPOST_OBJ_CQ:
		fill_create_cq(&z->env, &cq);
		ret = rp_ioctl(end.fd, RPOST_IOC_CREATE_CQ, &cq);
		*handle = cq.handle;
		return ret;
	case RPOST_OBJ_QP:
		ret = rp_create_own(&end, RPOST_QPT_UD, 0);
		*handle = end.qp;
		return ret;
	case RPOST_OBJ_SRQ:
		ret = rp_create_srq(end.fd, end.pd, 4, &srq);
		*handle = srq.handle;
		return ret;
	}
	return rp_create_id(end.fd, end.channel, handle);
}

/* Make and destroy; what is in use is destroyed as soon as it is not. */
static void *churn(void *arg)
{
	struct churn *c = arg;
	unsigned int round = 0;
	uint32_t handle;
	int ret;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		ret = churn_make(c->zoo, c->type, &handle);
		if (ret) {
			c->wrong = ret;
			break;
		}
		__atomic_store_n(&c->handle, handle, __ATOMIC_RELAXED);
		usleep(round++ % 8 * 40);
		while ((ret = rp_destroy(c->zoo->env.end.fd, c->type,
					 handle)) == -EBUSY)
			sched_yield();
		if (ret) {
			c->wrong = ret;
			break;
		}
	}
	return NULL;
}

/* What commands may say of an object that comes and goes. */
static bool may_say(int ret)
{
	const int fine[] = { 0, -ENOENT, -EINVAL, -ENOTCONN, -ENOMEM,
			     -EOPNOTSUPP, -EBUSY, -EADDRINUSE };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fine); i++) {
		if (ret == fine[i])
			return true;
	}
	return false;
}

struct counts {
	unsigned int found, missed;
};

/* One command some times with what the other thread has just now. */
static void meet(struct __test_metadata *_metadata, FIXTURE_DATA(handles) *self,
		 const struct place *p, struct churn *c, struct counts *n)
{
	struct env *env = &self->mine.env;
	const struct row *row = row_of(p);
	uint32_t handle;
	int round, ret;

	for (round = 0; round < 40; round++) {
		memset(self->cmd, 0, sizeof(self->cmd));
		ASSERT_EQ(0, row->fill(env, self->cmd));
		*(uint32_t *)self->cmd = row->size;
		handle = __atomic_load_n(&c->handle, __ATOMIC_RELAXED);
		memcpy(self->cmd + p->offset, &handle, sizeof(handle));
		ret = rp_ioctl(env->end.fd, p->nr, self->cmd);
		EXPECT_TRUE(may_say(ret))
			TH_LOG("%s: %d", p->name, ret);
		n->found += ret != -ENOENT;
		n->missed += ret == -ENOENT;
		if (ret || !p->made_type)
			continue;
		memcpy(&handle, self->cmd + p->made_offset, sizeof(handle));
		EXPECT_EQ(0, rp_destroy(env->end.fd, p->made_type, handle))
			TH_LOG("%s", p->name);
	}
}

/*
 * Every command that names an object, while another thread makes and destroys
 * such objects.  Each must find it or not, and what it makes of it can be
 * destroyed; nothing hangs, and nothing is left.
 */
TEST_F(handles, destroyed_meanwhile)
{
	const unsigned int types[] = { RPOST_OBJ_PD, RPOST_OBJ_CQ, RPOST_OBJ_QP,
				       RPOST_OBJ_ID, RPOST_OBJ_SRQ };
	struct churn c = { .zoo = &self->mine };
	const struct place *p;
	struct counts n;
	pthread_t thread;
	uint64_t until;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		c.type = types[i];
		c.handle = 0;
		c.stop = false;
		n.found = 0;
		n.missed = 0;
		until = rp_now_ms() + TEST_CHANCE_MS;
		ASSERT_EQ(0, pthread_create(&thread, NULL, churn, &c));
		while (!__atomic_load_n(&c.handle, __ATOMIC_RELAXED) &&
		       rp_now_ms() < until)
			sched_yield();
		do {
			for_each_place(p) {
				if (p->kind == c.type)
					meet(_metadata, self, p, &c, &n);
			}
		} while ((!n.found || !n.missed) && rp_now_ms() < until);
		__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(0, c.wrong);
		EXPECT_LT(0, n.found);
		EXPECT_LT(0, n.missed);
	}
}

TEST_HARNESS_MAIN
