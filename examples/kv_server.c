// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A key-value store.  Clients (kv_load) read the table by RDMA, of which the
 * server notices nothing; it handles only what they PUT, one at a time.
 *
 * Usage: kv_server [-s] [CLIENTS]    ends when so many have gone, 1 by default
 *
 * With -s it pauses in the middle of each PUT, so that many reads are torn.
 */
#include <unistd.h>

#include "common.h"
#include "kv.h"

struct client {
	struct rdma_cm_id *id;
	struct ibv_mr *table_mr, *put_mr;
	struct kv_put put;
	int puts;
};

static struct kv_slot table[KV_BUCKETS][KV_WAYS];
static int loop, gone, slow;

/*
 * The slot changes while clients read it, in any order and in pieces: the
 * checksum tells them.  Returns the new version, or 0 if the bucket is full.
 */
static uint64_t put(const struct kv_put *put)
{
	struct kv_slot *slot = table[kv_bucket(put->key)], *end = slot + KV_WAYS;
	struct kv_slot new = { .key = put->key };

	while (slot < end && slot->version && slot->key != put->key)
		slot++;
	if (slot == end)
		return 0;
	new.version = slot->version + 1;
	memcpy(new.value, put->value, sizeof(new.value));
	new.sum = kv_sum(&new);
	if (slow) {
		memcpy(slot, &new, sizeof(new) / 2);
		usleep(1000);
	}
	memcpy(slot, &new, sizeof(new));
	return new.version;
}

/*
 * Each client gets a key of its own for the table, which allows only to read and
 * ends with its connection.
 */
static int prepare(struct client *c)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 1,
			 .max_recv_sge = 1, .max_inline_data = sizeof(struct kv_done) },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	if (rdma_create_qp(c->id, NULL, &attr))
		return -1;
	c->table_mr = rdma_reg_read(c->id, table, sizeof(table));
	c->put_mr = rdma_reg_msgs(c->id, &c->put, sizeof(c->put));
	if (!c->table_mr || !c->put_mr || ibv_req_notify_cq(c->id->recv_cq, 0) ||
	    watch(loop, c->id->recv_cq_channel->fd, c))
		return -1;
	return rdma_post_recv(c->id, NULL, &c->put, sizeof(c->put), c->put_mr);
}

static void release(struct client *c, const char *why)
{
	printf("a client has gone after %d PUTs: %s\n", c->puts, why);
	gone++;
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->table_mr)
		rdma_dereg_mr(c->table_mr);
	if (c->put_mr)
		rdma_dereg_mr(c->put_mr);
	rdma_destroy_id(c->id);
	free(c);
}

static void admit(struct rdma_cm_id *id)
{
	struct kv_table where = { .addr = (uintptr_t)table, .buckets = KV_BUCKETS };
	struct rdma_conn_param param = {
		.private_data = &where, .private_data_len = sizeof(where),
		.responder_resources = 1,	/* reads at a time */
		.rnr_retry_count = 7,
	};
	struct client *c = calloc(1, sizeof(*c));

	check(!c, "calloc");
	c->id = id;
	id->context = c;
	if (prepare(c))
		return release(c, strerror(errno));
	where.rkey = c->table_mr->rkey;
	if (rdma_accept(id, &param))
		release(c, strerror(errno));
}

static const char *on_completions(struct client *c)
{
	struct kv_done done;
	struct ibv_wc wc;

	if (next_completions(c->id->recv_cq_channel))
		return errno == EAGAIN ? NULL : strerror(errno);
	while (ibv_poll_cq(c->id->recv_cq, 1, &wc) > 0) {
		if (wc.status || wc.byte_len != sizeof(c->put))
			return wc.status ? ibv_wc_status_str(wc.status) : "no PUT";
		done.version = put(&c->put);
		c->puts++;
		while (ibv_poll_cq(c->id->send_cq, 1, &wc) > 0)
			;	/* earlier answers */
		if (rdma_post_recv(c->id, NULL, &c->put, sizeof(c->put), c->put_mr) ||
		    rdma_post_send(c->id, NULL, &done, sizeof(done), NULL,
				   IBV_SEND_INLINE))
			return strerror(errno);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct epoll_event event;
	struct rdma_cm_id *id;
	const char *why;
	int until;

	slow = argc > 1 && !strcmp(argv[1], "-s");
	until = number(argv[1 + slow], 1);
	id = listener(KV_PORT);
	loop = epoll_create1(EPOLL_CLOEXEC);
	check(loop < 0 || watch(loop, id->channel->fd, NULL), "epoll");
	while (gone < until) {
		check(epoll_wait(loop, &event, 1, -1) < 0, "epoll_wait");
		if (!event.data.ptr)
			handle_event(id->channel, admit, release);
		else if ((why = on_completions(event.data.ptr)))
			release(event.data.ptr, why);
	}
	close(loop);
	unlisten(id);
	return 0;
}
