// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a command takes only handles and channels of the right type that
 * its own open file has.  Each field is tried with objects of other types and
 * of other files, with destroyed and unknown handles, and with objects that
 * another thread is destroying.  A failure means that a program reaches an
 * object that it must not reach, or a freed one.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "command_env.h"

#define TYPES	(RPOST_OBJ_AH + 1)

/* A command's field that names an object or a channel. */
struct place {
	const struct command *cmd;
	const struct field *field;
};

static struct place places[128];
static unsigned int num_places;

static void __attribute__((constructor)) find_places(void)
{
	const struct command *cmd;
	const struct field *field;

	for_each_command(cmd) {
		for_each_field(field, cmd) {
			if (field->kind == K_REG &&
			    (field->reg < TYPES || field->reg == R_COMP ||
			     field->reg == R_EVENT))
				places[num_places++] = (struct place) { cmd, field };
		}
	}
}

#define for_each_place(p) for (p = places; p < places + num_places; p++)
#define LOG_PLACE(p, format, ...) \
	TH_LOG("%s.%s " format, (p)->cmd->name, (p)->field->name, __VA_ARGS__)

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

	RP_TRY(env_init(&z->env));
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
	z->handles[RPOST_OBJ_QP] = z->ud_qp;
	z->handles[RPOST_OBJ_ID] = end->id;
	z->handles[RPOST_OBJ_SRQ] = srq.handle;
	return 0;
}

static void zoo_close(struct zoo *z)
{
	close(z->comp);
	close(z->async);
	env_close(&z->env);
}

FIXTURE(handles) {
	struct zoo mine, foreign;
	char cmd[MAX_STRUCT];
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

/*
 * Call a command with one field replaced; return its result, or EUCLEAN if a call
 * that failed has made an object or written to its struct.
 */
static int call_with(FIXTURE_DATA(handles) *self, const struct place *p,
		     uint32_t value)
{
	struct env *env = &self->mine.env;
	char before[MAX_STRUCT];
	int objects, ret;

	if (env_fill(env, p->cmd, self->cmd))
		return -EIO;
	memcpy(self->cmd + p->field->offset, &value, sizeof(value));
	memcpy(before, self->cmd, p->cmd->size);
	objects = rp_num_objects(env->end.fd);
	ret = rp_ioctl(env_fd(env, p->cmd), p->cmd->nr, self->cmd);
	return ret && (objects != rp_num_objects(env->end.fd) ||
		       memcmp(before, self->cmd, p->cmd->size)) ? -EUCLEAN : ret;
}

/*
 * Each field for a handle, with objects of all other types and with handles
 * that name nothing.  Must be ENOENT and change nothing.
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
		if (p->field->reg >= TYPES)
			continue;
		for (type = RPOST_OBJ_PD; type < TYPES; type++) {
			if (type == p->field->reg)
				continue;
			EXPECT_EQ(-ENOENT, call_with(self, p,
						     self->mine.handles[type]))
				LOG_PLACE(p, "of type %u", type);
		}
		for (i = 0; i < ARRAY_SIZE(nothing); i++) {
			if (p->field->optional && !nothing[i])
				continue;
			EXPECT_EQ(-ENOENT, call_with(self, p, nothing[i]))
				LOG_PLACE(p, "%#x", nothing[i]);
		}
	}
	/* The failed calls have left no object in use. */
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, self->mine.ud_qp));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, self->mine.env.new_qp));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_CQ, end->cq.cmd.handle));
}

/*
 * Each field for a handle, with handles of another open file that are larger
 * than all of this file's.  Must be ENOENT and change nothing there.
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
		handle = p->field->reg < TYPES ? handles[p->field->reg] : 0;
		if (!handle)
			continue;
		EXPECT_EQ(-ENOENT, call_with(self, p, handle))
			LOG_PLACE(p, "%u", handle);
		tried++;
	}
	for (type = RPOST_OBJ_PD; type < TYPES; type++)
		EXPECT_EQ(-ENOENT, rp_destroy(end->fd, type, handles[type]));
	EXPECT_LT(30, tried);
	/* A work request must find only handles of its own file, too. */
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
 * Each field for a channel, with all other kinds of files and with channels of
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
		{ z->comp, R_COMP },
		{ z->env.end.channel, R_EVENT },
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
		if (p->field->reg < TYPES)
			continue;
		for (i = 0; i < ARRAY_SIZE(files); i++) {
			if (p->field->optional && files[i].fd == -1)
				continue;
			EXPECT_EQ(files[i].kind == p->field->reg ? 0 : -EBADF,
				  call_with(self, p, files[i].fd))
				LOG_PLACE(p, "%u: %d", i, files[i].fd);
		}
	}
	close(null);
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * Every command on every kind of channel, and the event channel's command on
 * the other kinds.  Must be ENOTTY.
 */
TEST_F(handles, commands_on_channels)
{
	struct zoo *z = &self->mine;
	const int fds[] = { z->comp, z->async, z->env.end.channel,
			    z->env.end.fd };
	const struct command *cmd;
	unsigned int i;

	for_each_command(cmd) {
		for (i = 0; i < ARRAY_SIZE(fds); i++) {
			if (fds[i] == env_fd(&z->env, cmd))
				continue;
			memset(self->cmd, 0, sizeof(self->cmd));
			*(uint32_t *)self->cmd = cmd->size;
			EXPECT_EQ(-ENOTTY, rp_ioctl(fds[i], cmd->nr, self->cmd))
				TH_LOG("%s on %u", cmd->name, i);
		}
	}
}

/*
 * The address handle of a datagram is replaced by everything else.  Must be
 * ENOENT, and nothing is posted.
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
 * CONNECT names its queue pair by number, here of another open file or of no
 * queue pair.  Must fail: otherwise a program could end another's connection.
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

/* ------------------------------------- destroyed by another thread */

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
	struct rpost_create_cq cq;
	int ret;

	switch (type) {
	case RPOST_OBJ_PD:
		return rp_alloc_pd(end.fd, end.device, handle);
	case RPOST_OBJ_CQ:
		ret = env_fill(&z->env, command_of(RPOST_CMD_CREATE_CQ), &cq);
		if (!ret)
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

/* Create and destroy objects; retry while a command uses the object. */
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
		/* On one processor no command runs before, with a handle of nothing. */
		if (round % 4 == 0)
			usleep(100);
	}
	return NULL;
}

/*
 * True for results of a command whose object comes and goes.  ADVISE_MR may find
 * another domain, without the region.
 */
static bool may_say(const struct command *cmd, int ret)
{
	const int fine[] = { 0, -ENOENT, -EINVAL, -ENOTCONN, -ENOMEM,
			     -EOPNOTSUPP, -EBUSY, -EADDRINUSE };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fine); i++) {
		if (ret == fine[i])
			return true;
	}
	return ret == -EFAULT ? cmd->nr == RPOST_IOC_ADVISE_MR : ret == cmd->want;
}

struct counts {
	unsigned int found, missed;
};

/* Call one command 40 times with the handle of the other thread's object. */
static void meet(struct __test_metadata *_metadata, FIXTURE_DATA(handles) *self,
		 const struct place *p, struct churn *c, struct counts *n)
{
	const struct field *made = made_object(p->cmd);
	struct env *env = &self->mine.env;
	uint32_t handle;
	int round, ret;

	for (round = 0; round < 40; round++) {
		ASSERT_EQ(0, env_fill(env, p->cmd, self->cmd));
		handle = __atomic_load_n(&c->handle, __ATOMIC_RELAXED);
		memcpy(self->cmd + p->field->offset, &handle, sizeof(handle));
		ret = rp_ioctl(env_fd(env, p->cmd), p->cmd->nr, self->cmd);
		EXPECT_TRUE(may_say(p->cmd, ret))
			LOG_PLACE(p, "%d", ret);
		n->found += ret != -ENOENT;
		n->missed += ret == -ENOENT;
		if (ret || !made)
			continue;
		memcpy(&handle, self->cmd + made->offset, sizeof(handle));
		EXPECT_EQ(0, rp_destroy(env->end.fd, made->reg, handle))
			LOG_PLACE(p, "%u", handle);
	}
}

/*
 * Each command that names an object runs while another thread creates and
 * destroys such objects.  Each must either find the object or be ENOENT, and it
 * must be possible to destroy what it creates; nothing hangs, and no object is
 * left.
 */
TEST_F(handles, destroyed_meanwhile)
{
	const unsigned int types[] = { RPOST_OBJ_PD, RPOST_OBJ_CQ, RPOST_OBJ_QP,
				       RPOST_OBJ_ID, RPOST_OBJ_SRQ };
	struct churn c = { .zoo = &self->mine };
	const struct place *p;
	struct counts all[ARRAY_SIZE(types)] = { 0 }, *n;
	pthread_t thread;
	uint64_t until;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		n = &all[i];
		c.type = types[i];
		c.handle = 0;
		c.stop = false;
		until = rp_now_ms() + TEST_CHANCE_MS;
		ASSERT_EQ(0, pthread_create(&thread, NULL, churn, &c));
		while (!__atomic_load_n(&c.handle, __ATOMIC_RELAXED) &&
		       rp_now_ms() < until)
			sched_yield();
		do {
			for_each_place(p) {
				if (p->field->reg == c.type &&
				    p->cmd->nr != RPOST_IOC_DESTROY)
					meet(_metadata, self, p, &c, n);
			}
		} while ((!n->found || !n->missed) && rp_now_ms() < until);
		__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(0, c.wrong);
	}
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		n = &all[i];
		RP_SKIP_UNMET(n->found && n->missed,
			      "type %u was found %u times, missed %u times",
			      types[i], n->found, n->missed);
	}
}

TEST_HARNESS_MAIN
