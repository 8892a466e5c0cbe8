// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Moving data over a connection: every operation, and how it fails. */
#include "pair.h"

static char sbuf[8192] __attribute__((aligned(4096)));
static char rbuf[8192] __attribute__((aligned(4096)));

struct mem {
	struct ibv_mr *s;	/* sbuf, the client's */
	struct ibv_mr *r;	/* rbuf, the server's */
};

#define REMOTE_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct mem reg(struct pair *p)
{
	struct mem m;

	need(m.s = ibv_reg_mr(p->client->pd, sbuf, sizeof(sbuf), REMOTE_ALL));
	need(m.r = ibv_reg_mr(p->server->pd, rbuf, sizeof(rbuf), REMOTE_ALL));
	memset(rbuf, 0, sizeof(rbuf));
	for (size_t i = 0; i < sizeof(sbuf); i++)
		sbuf[i] = 'a' + i % 23;
	return m;
}

static void unreg(struct mem *m)
{
	ok(rdma_dereg_mr(m->s) == 0);
	ok(rdma_dereg_mr(m->r) == 0);
}

static void send_recv(struct pair *p, struct mem *m)
{
	struct ibv_wc wc;
	void *ctx = &p;

	ok(!rdma_post_recv(p->server, ctx, rbuf, 100, m->r));
	ok(!rdma_post_send(p->client, NULL, sbuf, 77, m->s, 0));
	ok(rdma_get_send_comp(p->client, &wc) == 1);
	ok(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND);
	ok(wc.qp_num == p->client->qp->qp_num && wc.wr_id == 0);
	ok(rdma_get_recv_comp(p->server, &wc) == 1);
	ok(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	ok(wc.byte_len == 77 && wc.wr_id == (uintptr_t)ctx);
	ok(wc.qp_num == p->server->qp->qp_num);
	ok(!memcmp(rbuf, sbuf, 77) && !rbuf[77]);
}

static void inline_send(struct pair *p, struct mem *m)
{
	static char small[64];
	struct ibv_wc wc;

	/* No region, and the buffer is free when the call returns. */
	memset(rbuf, 0, sizeof(rbuf));
	ok(!rdma_post_recv(p->server, NULL, rbuf, 100, m->r));
	memset(small, 'x', sizeof(small));
	ok(!rdma_post_send(p->client, NULL, small, 64, NULL, IBV_SEND_INLINE));
	memset(small, 'y', sizeof(small));
	ok(rdma_get_recv_comp(p->server, &wc) == 1 && wc.byte_len == 64);
	ok(rbuf[0] == 'x' && rbuf[63] == 'x' && !rbuf[64]);
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
}

static void vectors(struct pair *p, struct mem *m)
{
	struct ibv_sge out[3] = {
		{ (uintptr_t)sbuf, 5, m->s->lkey },
		{ (uintptr_t)sbuf + 100, 0, 0 },
		{ (uintptr_t)sbuf + 200, 7, m->s->lkey },
	};
	struct ibv_sge in[2] = {
		{ (uintptr_t)rbuf, 6, m->r->lkey },
		{ (uintptr_t)rbuf + 1000, 10, m->r->lkey },
	};
	struct ibv_wc wc;

	memset(rbuf, 0, sizeof(rbuf));
	ok(!rdma_post_recvv(p->server, NULL, in, 2));
	ok(!rdma_post_sendv(p->client, NULL, out, 3, 0));
	ok(rdma_get_recv_comp(p->server, &wc) == 1 && wc.byte_len == 12);
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(!memcmp(rbuf, sbuf, 5) && rbuf[5] == sbuf[200]);
	ok(!memcmp(rbuf + 1000, sbuf + 201, 6) && !rbuf[6] && !rbuf[1006]);

	memset(rbuf, 0, sizeof(rbuf));
	ok(!rdma_post_writev(p->client, NULL, out, 3, 0, (uintptr_t)rbuf + 8,
			     m->r->rkey));
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(wc.opcode == IBV_WC_RDMA_WRITE);
	ok(!memcmp(rbuf + 8, sbuf, 5) && !memcmp(rbuf + 13, sbuf + 200, 7));

	memset(sbuf, 0, 300);
	ok(!rdma_post_readv(p->client, NULL, out, 3, 0, (uintptr_t)rbuf + 8,
			    m->r->rkey));
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(wc.opcode == IBV_WC_RDMA_READ);
	ok(!memcmp(rbuf + 8, sbuf, 5) && !memcmp(rbuf + 13, sbuf + 200, 7));
}

static void nothing(struct pair *p)
{
	struct ibv_wc wc;

	ok(!rdma_post_recvv(p->server, NULL, NULL, 0));
	ok(!rdma_post_sendv(p->client, NULL, NULL, 0, 0));
	ok(rdma_get_recv_comp(p->server, &wc) == 1 && !wc.status);
	ok(wc.byte_len == 0);
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(!rdma_post_writev(p->client, NULL, NULL, 0, 0, 0, 0));
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(!rdma_post_readv(p->client, NULL, NULL, 0, 0, 0, 0));
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
}

static void one_sided(struct pair *p, struct mem *m)
{
	struct ibv_wc wc;

	memset(rbuf, 0, sizeof(rbuf));
	memset(sbuf, 'q', sizeof(sbuf));
	ok(!rdma_post_write(p->client, NULL, sbuf, 8192, m->s, 0,
			    (uintptr_t)rbuf, m->r->rkey));
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(!memcmp(sbuf, rbuf, 8192));
	memset(rbuf, 'z', sizeof(rbuf));
	ok(!rdma_post_read(p->client, NULL, sbuf, 8192, m->s, 0,
			   (uintptr_t)rbuf, m->r->rkey));
	ok(rdma_get_send_comp(p->client, &wc) == 1 && !wc.status);
	ok(!memcmp(sbuf, rbuf, 8192));
}

static void immediate(struct pair *p, struct mem *m)
{
	struct ibv_sge sge = { (uintptr_t)sbuf, 16, m->s->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .imm_data = htonl(0x12345678),
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.wr.rdma.remote_addr = (uintptr_t)rbuf,
		.wr.rdma.rkey = m->r->rkey,
	}, *bad;
	struct ibv_wc wc;

	ok(!rdma_post_recvv(p->server, NULL, NULL, 0));
	ok(!ibv_post_send(p->client->qp, &wr, &bad));
	wc = one_wc(p->server->recv_cq);
	ok(!wc.status && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
	ok((wc.wc_flags & IBV_WC_WITH_IMM) &&
	   wc.imm_data == htonl(0x12345678) && wc.byte_len == 16);
	ok(!one_wc(p->client->send_cq).status);

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	ok(!rdma_post_recv(p->server, NULL, rbuf, 64, m->r));
	ok(!ibv_post_send(p->client->qp, &wr, &bad));
	wc = one_wc(p->server->recv_cq);
	ok(!wc.status && wc.opcode == IBV_WC_RECV && wc.byte_len == 16);
	ok((wc.wc_flags & IBV_WC_WITH_IMM) &&
	   wc.imm_data == htonl(0x12345678));
	ok(!one_wc(p->client->send_cq).status);
}

static void atomics(struct pair *p, struct mem *m)
{
	struct ibv_sge sge = { (uintptr_t)sbuf, 8, m->s->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic.remote_addr = (uintptr_t)rbuf,
		.wr.atomic.rkey = m->r->rkey,
		.wr.atomic.compare_add = 5,
	}, *bad;
	uint64_t *there = (void *)rbuf, *here = (void *)sbuf;
	struct ibv_wc wc;

	*there = 10;
	ok(!ibv_post_send(p->client->qp, &wr, &bad));
	wc = one_wc(p->client->send_cq);
	ok(!wc.status && wc.opcode == IBV_WC_FETCH_ADD);
	ok(*there == 15 && *here == 10);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 15;
	wr.wr.atomic.swap = 99;
	ok(!ibv_post_send(p->client->qp, &wr, &bad));
	wc = one_wc(p->client->send_cq);
	ok(!wc.status && wc.opcode == IBV_WC_COMP_SWAP);
	ok(*there == 99 && *here == 15);
}

/* A list in one call, and which one is refused. */
static void lists(struct pair *p, struct mem *m)
{
	struct ibv_sge sge = { (uintptr_t)sbuf, 32, m->s->lkey }, many[9];
	struct ibv_send_wr wr[16], *bad = NULL;
	struct ibv_recv_wr rwr[3], *rbad = NULL;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;
	int i, n, err;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < 16; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = 100 + i, .next = i < 15 ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma.remote_addr = (uintptr_t)rbuf + 32 * i,
			.wr.rdma.rkey = m->r->rkey,
		};
	ok(ibv_post_send(p->client->qp, wr, &bad) == 0);
	for (i = 0, n = 0; i < 16; i++) {
		wc = one_wc(p->client->send_cq);
		n += !wc.status && wc.wr_id == 100u + i;
	}
	ok(n == 16);

	/* The third has too many entries: two go out. */
	need(!ibv_query_qp(p->client->qp, &attr, IBV_QP_CAP, &init));
	for (i = 0; i < 9; i++)
		many[i] = sge;
	wr[2].sg_list = many;
	wr[2].num_sge = init.cap.max_send_sge + 1;
	if (init.cap.max_send_sge < 9) {
		err = ibv_post_send(p->client->qp, wr, &bad);
		ok(err == EINVAL || err == ENOMEM);
		ok(bad == &wr[2]);
		ok(one_wc(p->client->send_cq).wr_id == 100);
		ok(one_wc(p->client->send_cq).wr_id == 101);
		ok(ibv_poll_cq(p->client->send_cq, 1, &wc) == 0);
	}

	/* The same for receives, with the queue running full. */
	for (i = 0; i < 3; i++)
		rwr[i] = (struct ibv_recv_wr) {
			.wr_id = 200 + i, .next = i < 2 ? &rwr[i + 1] : NULL,
		};
	for (i = 0; i < 10000; i++) {
		err = ibv_post_recv(p->server->qp, rwr, &rbad);
		if (err)
			break;
	}
	ok(err == ENOMEM);
	ok(rbad >= &rwr[0] && rbad <= &rwr[2]);
	ok(i * 3 + (rbad - rwr) >= 16);
}

/* Fills the queue by one list that is longer than it. */
static void full_queue(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct ibv_send_wr *wrs, *bad = NULL;
	struct ibv_wc wc;
	struct pair p;
	int i, n, err, len = 2000;

	attr.sq_sig_all = 0;
	pair_connect(&p, &attr, NULL);
	ok(attr.cap.max_send_wr >= 16 && attr.cap.max_recv_wr >= 16);
	ok(attr.cap.max_send_sge >= 4 && attr.cap.max_inline_data >= 64);
	need((uint32_t)len > attr.cap.max_send_wr);
	need(wrs = calloc(len, sizeof(*wrs)));
	for (i = 0; i < len; i++) {
		/* Without receives, sends stay on the queue. */
		wrs[i].wr_id = i;
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].send_flags = IBV_SEND_SIGNALED;
		wrs[i].next = i + 1 < len ? &wrs[i + 1] : NULL;
	}
	err = ibv_post_send(p.client->qp, wrs, &bad);
	ok(err == ENOMEM);
	n = bad - wrs;
	printf("# %d of at most %u posted\n", n, attr.cap.max_send_wr);
	ok(n >= 16);
	need(!rdma_disconnect(p.client));
	for (i = 0; i < n; i++) {
		wc = one_wc(p.client->send_cq);
		if (wc.wr_id != (uint64_t)i || !wc.status)
			break;
	}
	ok(i == n);
	ok(ibv_poll_cq(p.client->send_cq, 1, &wc) == 0);
	eat_event(p.sch, RDMA_CM_EVENT_DISCONNECTED);
	need(!rdma_disconnect(p.server));
	eat_event(p.ch, RDMA_CM_EVENT_DISCONNECTED);
	free(wrs);
	pair_end(&p);
}

/* A list that takes several system calls, and a very long work request. */
static void long_lists(void)
{
	struct ibv_qp_init_attr attr = plain_qp(), copy;
	struct ibv_send_wr wrs[300] = {}, *bad;
	struct ibv_recv_wr rwrs[300] = {}, *rbad;
	struct ibv_sge sge[2];
	struct ibv_wc wc;
	struct pair p;
	struct mem m;
	uint32_t len;
	int i, n;

	attr.cap.max_send_wr = 300;
	attr.cap.max_recv_wr = 300;
	pair_begin(&p);
	/* As much inline data as there may be. */
	for (len = 4096; len > 64; len /= 2) {
		/* A copy, since it comes back naming queues. */
		attr.cap.max_inline_data = len;
		copy = attr;
		if (!rdma_create_qp(p.client, NULL, &copy))
			break;
	}
	rdma_destroy_qp(p.client);
	pair_end(&p);
	printf("# %u bytes inline\n", len);
	pair_connect(&p, &attr, NULL);
	m = reg(&p);

	for (i = 0; i < 300; i++) {
		rwrs[i].wr_id = i;
		rwrs[i].next = i < 299 ? &rwrs[i + 1] : NULL;
		wrs[i].wr_id = i;
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].next = i < 299 ? &wrs[i + 1] : NULL;
	}
	ok(!ibv_post_recv(p.server->qp, rwrs, &rbad));
	ok(!ibv_post_send(p.client->qp, wrs, &bad));
	for (i = 0, n = 0; i < 300; i++) {
		wc = one_wc(p.client->send_cq);
		n += !wc.status && wc.wr_id == (uint64_t)i;
		wc = one_wc(p.server->recv_cq);
		n += !wc.status && wc.wr_id == (uint64_t)i;
	}
	ok(n == 600);

	/* Between two short ones, the long one in two pieces. */
	for (i = 0; i < 3; i++) {
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
		wrs[i].wr.rdma.remote_addr = (uintptr_t)rbuf;
		wrs[i].wr.rdma.rkey = m.r->rkey;
	}
	sge[0] = (struct ibv_sge) { (uintptr_t)sbuf + 1, 3, 0 };
	sge[1] = (struct ibv_sge) { (uintptr_t)sbuf + 9, len - 3, 0 };
	wrs[1].sg_list = sge;
	wrs[1].num_sge = 2;
	wrs[1].send_flags = IBV_SEND_INLINE;
	ok(!ibv_post_send(p.client->qp, wrs, &bad));
	for (i = 0; i < 3; i++)
		ok(!one_wc(p.client->send_cq).status);
	ok(!memcmp(rbuf, sbuf + 1, 3) &&
	   !memcmp(rbuf + 3, sbuf + 9, len - 3) && !rbuf[len]);

	/* One byte more than there may be is refused, and nothing after it. */
	if (attr.cap.max_inline_data == len) {
		sge[1].length++;
		n = ibv_post_send(p.client->qp, wrs, &bad);
		ok((n == EINVAL || n == ENOMEM) && bad == &wrs[1]);
		ok(!one_wc(p.client->send_cq).status);
		ok(ibv_poll_cq(p.client->send_cq, 1, &wc) == 0);
	}
	unreg(&m);
	pair_disconnect(&p);
	pair_end(&p);
}

/* What goes wrong on the queue ends the connection's use. */
static void wrong_key(void)
{
	struct ibv_qp_init_attr attr = plain_qp(), init;
	struct ibv_sge sge = { (uintptr_t)sbuf, 8, 0x4711 };
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	}, *bad;
	struct ibv_qp_attr qattr;
	struct ibv_wc wc;
	struct pair p;

	pair_connect(&p, &attr, NULL);
	need(!rdma_post_recvv(p.server, NULL, NULL, 0));
	ok(!ibv_post_send(p.client->qp, &wr, &bad));
	wc = one_wc(p.client->send_cq);
	ok(wc.wr_id == 7 && wc.status == IBV_WC_LOC_PROT_ERR);
	ok(wc.qp_num == p.client->qp->qp_num);
	ok(!ibv_query_qp(p.client->qp, &qattr, IBV_QP_STATE, &init));
	ok(qattr.qp_state == IBV_QPS_ERR);
	wr.num_sge = 0;
	ok(!ibv_post_send(p.client->qp, &wr, &bad));
	ok(one_wc(p.client->send_cq).status == IBV_WC_WR_FLUSH_ERR);
	pair_disconnect(&p);
	ok(one_wc(p.server->recv_cq).status == IBV_WC_WR_FLUSH_ERR);
	pair_end(&p);
}

static void wrong_remote_key(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct pair p;
	struct mem m;

	pair_connect(&p, &attr, NULL);
	m = reg(&p);
	ok(!rdma_post_write(p.client, NULL, sbuf, 8, m.s, 0, (uintptr_t)rbuf,
			    m.r->rkey + 0x1234));
	ok(one_wc(p.client->send_cq).status == IBV_WC_REM_ACCESS_ERR);
	unreg(&m);
	pair_disconnect(&p);
	pair_end(&p);
}

/* Every attribute that there is. */
#define ALL_ATTRS ((IBV_QP_DEST_QPN << 1) - 1)

static void query(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ok(!ibv_query_qp(p->client->qp, &attr, ALL_ATTRS, &init));
	ok(attr.qp_state == IBV_QPS_RTS && attr.port_num == 1);
	ok(attr.dest_qp_num == p->server->qp->qp_num);
	ok(init.send_cq == p->client->send_cq && init.qp_type == IBV_QPT_RC);
	ok(init.recv_cq == p->client->recv_cq && init.sq_sig_all == 1);
	ok(init.cap.max_send_wr >= 16 && attr.cap.max_send_wr >= 16);
	printf("# timeout %u retry %u rnr %u min_rnr %u rd %u/%u mtu %u\n",
	       attr.timeout, attr.retry_cnt, attr.rnr_retry,
	       attr.min_rnr_timer, attr.max_rd_atomic, attr.max_dest_rd_atomic,
	       attr.path_mtu);
	printf("# access %#x hop %u tclass %u sgid %u sl %u\n",
	       attr.qp_access_flags, attr.ah_attr.grh.hop_limit,
	       attr.ah_attr.grh.traffic_class, attr.ah_attr.grh.sgid_index,
	       attr.ah_attr.sl);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct pair p;
	struct mem m;

	if (argc > 1)
		server_addr = argv[1];
	pair_connect(&p, &attr, NULL);
	m = reg(&p);
	query(&p);
	send_recv(&p, &m);
	inline_send(&p, &m);
	vectors(&p, &m);
	nothing(&p);
	one_sided(&p, &m);
	immediate(&p, &m);
	atomics(&p, &m);
	lists(&p, &m);
	unreg(&m);
	pair_disconnect(&p);
	pair_end(&p);
	full_queue();
	long_lists();
	wrong_key();
	wrong_remote_key();
	return tap_done();
}
