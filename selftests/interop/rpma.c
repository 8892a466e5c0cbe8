// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Uses Debian's librpma, which is not rebuilt: each test is a server and a
 * client in two processes, and covers a group of the library's functions.  A
 * failure means that librpma does not work over rdma_post's library.
 *
 *   rpma ADDRESS PORT TEST
 *
 * The exit status is 0 if the test passed, 2 if there is no such test, 1
 * otherwise.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "rpma.h"

/* Peers and memory, on one side only. */
static void peer_client(struct end *e)
{
	struct ibv_context *local, *remote;
	struct rpma_peer_cfg *pcfg;
	bool supported = false;
	int odp = -1;
	size_t size;
	void *ptr;

	OK(rpma_utils_get_ibv_context(addr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &local));
	OK(rpma_utils_get_ibv_context(addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, &remote));
	TRUE(local == remote);
	IS(rpma_utils_get_ibv_context("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL,
				      &local), RPMA_E_PROVIDER);
	OK(rpma_utils_ibv_context_is_odp_capable(remote, &odp));
	TRUE(odp == 0 || odp == 1);
	open_peer(e, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	OK(rpma_mr_get_ptr(e->mr, &ptr));
	TRUE(ptr == e->mem);
	OK(rpma_mr_get_size(e->mr, &size));
	IS(size, SIZE);
	IS(rpma_mr_reg(e->peer, e->mem, SIZE, 0, &e->mr), RPMA_E_INVAL);
	/* Neither rxe's provider nor librdma_post supports advice. */
	IS(rpma_mr_advise(e->mr, 0, SIZE, IBV_ADVISE_MR_ADVICE_PREFETCH, 0),
	   RPMA_E_NOSUPP);
	describe(e);
	OK(rpma_peer_cfg_from_descriptor(e->hello.cfg, e->hello.cfg_size, &pcfg));
	OK(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported));
	TRUE(supported);
	OK(rpma_peer_cfg_delete(&pcfg));
	OK(rpma_mr_remote_from_descriptor(e->hello.mr, e->hello.mr_size,
					  &e->remote));
	OK(rpma_mr_remote_delete(&e->remote));
	close_peer(e);
}

/* Endpoints, on one side only. */
static void endpoint_client(struct end *e)
{
	struct rpma_conn_req *req;
	struct rpma_ep *other;
	struct pollfd pfd;
	int fd;

	open_peer(e, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	OK(rpma_ep_listen(e->peer, addr, port, &e->ep));
	IS(rpma_ep_listen(e->peer, addr, port, &other), RPMA_E_PROVIDER);
	OK(rpma_ep_get_fd(e->ep, &fd));
	pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
	IS(poll(&pfd, 1, 0), 0);
	OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	/* librpma reports EAGAIN as an error of the provider. */
	IS(rpma_ep_next_conn_req(e->ep, NULL, &req), RPMA_E_PROVIDER);
	OK(rpma_ep_shutdown(&e->ep));
	OK(rpma_ep_listen(e->peer, addr, port, &e->ep));
	close_peer(e);
}

/* Connections are refused, then accepted, with private data and events. */
static void connect_server(struct end *e)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *req;
	uint32_t num = 0;

	listen_here(e);
	req = next_request(e);
	OK(rpma_conn_req_get_private_data(req, &data));
	TRUE(data.ptr && data.len >= 6 && !memcmp(data.ptr, "first", 6));
	OK(rpma_conn_req_delete(&req));
	answer(e, next_request(e));
	OK(rpma_conn_get_qp_num(e->conn, &num));
	TRUE(num);
	server_close(e);
}

static void connect_client(struct end *e)
{
	struct rpma_conn_private_data data = { "first", 6 };
	struct rpma_conn_req *req;
	enum rpma_conn_event event;
	struct pollfd pfd;
	int fd, ms = 0;

	open_peer(e, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	OK(rpma_conn_cfg_set_timeout(e->cfg, 2000));
	OK(rpma_conn_cfg_get_timeout(e->cfg, &ms));
	IS(ms, 2000);
	OK(rpma_conn_req_new(e->peer, addr, port, e->cfg, &req));
	OK(rpma_conn_req_delete(&req));
	OK(rpma_conn_req_new(e->peer, addr, port, e->cfg, &req));
	OK(rpma_conn_req_connect(&req, &data, &e->conn));
	next_event(e, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete(&e->conn));
	client_open(e);
	OK(rpma_conn_get_event_fd(e->conn, &fd));
	pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
	IS(poll(&pfd, 1, 0), 0);
	OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	IS(rpma_conn_next_event(e->conn, &event), RPMA_E_PROVIDER);
	OK(rpma_conn_disconnect(e->conn));
	IS(poll(&pfd, 1, 5000), 1);
	next_event(e, RPMA_CONN_CLOSED);
	OK(rpma_mr_remote_delete(&e->remote));
	OK(rpma_conn_delete(&e->conn));
	close_peer(e);
}

/* Reads of 0 and more bytes, with both completion flags. */
static void read_server(struct end *e)
{
	listen_here(e);
	fill(e->mem, SIZE, 1);
	answer(e, next_request(e));
	server_close(e);
}

/* The inputs that rpma_read(3) lists under RPMA_E_INVAL. */
static void refused_reads(struct end *e)
{
	const struct {
		struct rpma_conn *conn;
		struct rpma_mr_local *dst;
		size_t dst_offset;
		struct rpma_mr_remote *src;
		size_t src_offset, len;
		int flags;
	} refused[] = {
		{ NULL, e->mr, 0, e->remote, 0, 8, RPMA_F_COMPLETION_ALWAYS },
		{ e->conn, e->mr, 0, e->remote, 0, 8, 0 },
		{ e->conn, NULL, 0, e->remote, 0, 0, RPMA_F_COMPLETION_ALWAYS },
		{ e->conn, e->mr, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS },
		{ e->conn, NULL, 0, NULL, 8, 0, RPMA_F_COMPLETION_ALWAYS },
		{ e->conn, NULL, 8, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS },
		{ e->conn, NULL, 0, NULL, 0, 8, RPMA_F_COMPLETION_ALWAYS },
	};
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		IS(rpma_read(refused[i].conn, refused[i].dst, refused[i].dst_offset,
			     refused[i].src, refused[i].src_offset, refused[i].len,
			     refused[i].flags, e), RPMA_E_INVAL);
	no_completion(e->cq);
}

static void read_client(struct end *e)
{
	unsigned char *wanted = malloc(SIZE);
	struct pollfd pfd = { .events = POLLIN };

	client_open(e);
	fill(wanted, SIZE, 1);
	refused_reads(e);
	OK(rpma_cq_get_fd(e->cq, &pfd.fd));
	IS(poll(&pfd, 1, 0), 0);
	OK(rpma_read(e->conn, e->mr, 0, e->remote, 0, SIZE,
		     RPMA_F_COMPLETION_ALWAYS, e));
	IS(poll(&pfd, 1, 10000), 1);
	OK(rpma_cq_wait(e->cq));
	completion(e->cq, e, IBV_WC_RDMA_READ);
	OK(memcmp(e->mem, wanted, SIZE));
	memset(e->mem, 0, SIZE);
	OK(rpma_read(e->conn, e->mr, 100, e->remote, 8, 1000,
		     RPMA_F_COMPLETION_ON_ERROR, e->mem));
	OK(rpma_read(e->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
		     e->cq));
	completion(e->cq, e->cq, IBV_WC_RDMA_READ);
	no_completion(e->cq);
	OK(memcmp(e->mem + 100, wanted + 8, 1000));
	IS(e->mem[99] + e->mem[1100], 0);
	free(wanted);
	client_close(e);
}

/* Writes, with immediate data and atomic; flushes; reading back. */
static void write_server(struct end *e)
{
	unsigned char *wanted = malloc(SIZE);
	struct rpma_conn_req *req;
	struct ibv_wc wc;

	listen_here(e);
	req = next_request(e);
	OK(rpma_conn_req_recv(req, e->mr, 0, 0, e));
	answer(e, req);
	wc = completion(e->cq, e, IBV_WC_RECV_RDMA_WITH_IMM);
	TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
	IS(ntohl(wc.imm_data), 0x12345678);
	next_event(e, RPMA_CONN_CLOSED);
	fill(wanted, SIZE, 2);
	memcpy(wanted + 4096, "8 bytes", 8);
	OK(memcmp(e->mem, wanted, SIZE));
	free(wanted);
	OK(rpma_conn_disconnect(e->conn));
	OK(rpma_conn_delete(&e->conn));
	close_peer(e);
}

static void write_client(struct end *e)
{
	client_open(e);
	fill(e->mem, SIZE, 2);
	OK(rpma_write(e->conn, e->remote, 0, e->mr, 0, SIZE,
		      RPMA_F_COMPLETION_ALWAYS, e));
	completion(e->cq, e, IBV_WC_RDMA_WRITE);
	OK(rpma_write(e->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, e));
	completion(e->cq, e, IBV_WC_RDMA_WRITE);
	OK(rpma_atomic_write(e->conn, e->remote, 4096, "8 bytes",
			     RPMA_F_COMPLETION_ALWAYS, e->cq));
	completion(e->cq, e->cq, IBV_WC_RDMA_WRITE);
	OK(rpma_write_with_imm(e->conn, e->remote, 100, e->mr, 100, 1000,
			       RPMA_F_COMPLETION_ALWAYS, 0x12345678, e));
	completion(e->cq, e, IBV_WC_RDMA_WRITE);
	no_completion(e->cq);
	client_close(e);
}

static void flush_server(struct end *e)
{
	unsigned char wanted[4096];

	server_open(e);
	next_event(e, RPMA_CONN_CLOSED);
	fill(wanted, sizeof(wanted), 3);
	OK(memcmp(e->mem, wanted, sizeof(wanted)));
	OK(rpma_conn_disconnect(e->conn));
	OK(rpma_conn_delete(&e->conn));
	close_peer(e);
}

static void flush_client(struct end *e)
{
	client_open(e);
	fill(e->mem, 4096, 3);
	OK(rpma_write(e->conn, e->remote, 0, e->mr, 0, 2048,
		      RPMA_F_COMPLETION_ON_ERROR, e));
	OK(rpma_flush(e->conn, e->remote, 0, 2048, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, e));
	completion(e->cq, e, IBV_WC_RDMA_READ);
	OK(rpma_write(e->conn, e->remote, 2048, e->mr, 2048, 2048,
		      RPMA_F_COMPLETION_ON_ERROR, e));
	OK(rpma_flush(e->conn, e->remote, 2048, 2048, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, e));
	completion(e->cq, e, IBV_WC_RDMA_READ);
	client_close(e);
}

/* Messages in both directions, an empty one, one with immediate data. */
static void message_server(struct end *e)
{
	struct rpma_conn_req *req;
	struct ibv_wc wc;
	int i;

	listen_here(e);
	req = next_request(e);
	for (i = 0; i < 3; i++)
		OK(rpma_conn_req_recv(req, e->mr, i * MSG, MSG, e->mem + i));
	answer(e, req);
	for (i = 0; i < 3; i++) {
		wc = completion(e->cq, e->mem + i, IBV_WC_RECV);
		IS(wc.byte_len, i == 1 ? 0 : MSG);
		if (i == 2)
			IS(ntohl(wc.imm_data), 77);
		/* The next message may arrive before this send completes. */
		OK(rpma_send(e->conn, e->mr, i * MSG, wc.byte_len,
			     i == 2 ? RPMA_F_COMPLETION_ALWAYS :
				      RPMA_F_COMPLETION_ON_ERROR, e));
	}
	completion(e->cq, e, IBV_WC_SEND);
	server_close(e);
}

static void message_client(struct end *e)
{
	unsigned char wanted[MSG];
	uint32_t len;
	int i;

	client_open(e);
	for (i = 0; i < 3; i++) {
		len = i == 1 ? 0 : MSG;
		fill(e->mem, MSG, i);
		OK(rpma_recv(e->conn, e->mr, MSG, MSG, e));
		if (i == 2)
			OK(rpma_send_with_imm(e->conn, e->mr, 0, len,
					      RPMA_F_COMPLETION_ON_ERROR, 77, e));
		else
			OK(rpma_send(e->conn, e->mr, 0, len,
				     RPMA_F_COMPLETION_ON_ERROR, e));
		IS(completion(e->cq, e, IBV_WC_RECV).byte_len, len);
		fill(wanted, MSG, i);
		OK(memcmp(e->mem + MSG, wanted, len));
	}
	client_close(e);
}

/* Receives have a queue of their own; one channel serves both queues. */
static void channel_wait(struct end *e, bool receive)
{
	struct rpma_cq *cq = NULL;
	bool is_rcq = !receive;

	OK(rpma_conn_wait(e->conn, 0, &cq, &is_rcq));
	IS(is_rcq, receive);
	TRUE(cq == (receive ? e->rcq : e->cq));
	completion(cq, e, receive ? IBV_WC_RECV : IBV_WC_SEND);
}

static void channel_cfg(struct end *e)
{
	OK(rpma_conn_cfg_set_rcq_size(e->cfg, 8));
	OK(rpma_conn_cfg_set_compl_channel(e->cfg, true));
}

static void channel_server(struct end *e)
{
	struct rpma_conn_req *req;
	int fd;

	listen_here(e);
	channel_cfg(e);
	req = next_request(e);
	OK(rpma_conn_req_recv(req, e->mr, 0, MSG, e));
	answer(e, req);
	TRUE(e->rcq && e->rcq != e->cq);
	OK(rpma_conn_get_compl_fd(e->conn, &fd));
	IS(rpma_cq_wait(e->cq), RPMA_E_SHARED_CHANNEL);
	channel_wait(e, true);
	OK(rpma_send(e->conn, e->mr, 0, MSG, RPMA_F_COMPLETION_ALWAYS, e));
	channel_wait(e, false);
	server_close(e);
}

static void channel_client(struct end *e)
{
	open_peer(e, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	channel_cfg(e);
	client_open(e);
	fill(e->mem, MSG, 9);
	OK(rpma_recv(e->conn, e->mr, MSG, MSG, e));
	OK(rpma_send(e->conn, e->mr, 0, MSG, RPMA_F_COMPLETION_ALWAYS, e));
	channel_wait(e, false);
	channel_wait(e, true);
	OK(memcmp(e->mem, e->mem + MSG, MSG));
	client_close(e);
}

/* Two connections share one receive queue. */
static void srq_server(struct end *e)
{
	struct rpma_conn *conn[2];
	struct rpma_srq_cfg *cfg;
	uint32_t seen = 0, num;
	struct rpma_srq *srq;
	struct rpma_cq *rcq;
	struct ibv_wc wc;
	int i;

	listen_here(e);
	OK(rpma_srq_cfg_new(&cfg));
	OK(rpma_srq_cfg_set_rq_size(cfg, 16));
	OK(rpma_srq_cfg_set_rcq_size(cfg, 16));
	OK(rpma_srq_new(e->peer, cfg, &srq));
	OK(rpma_srq_get_rcq(srq, &rcq));
	OK(rpma_conn_cfg_set_srq(e->cfg, srq));
	for (i = 0; i < 4; i++)
		OK(rpma_srq_recv(srq, e->mr, i * MSG, MSG, e));
	for (i = 0; i < 2; i++) {
		answer(e, next_request(e));
		conn[i] = e->conn;
	}
	for (i = 0; i < 4; i++) {
		wc = completion(rcq, e, IBV_WC_RECV);
		OK(rpma_conn_get_qp_num(conn[0], &num));
		seen += wc.qp_num == num;
	}
	IS(seen, 2);
	for (i = 0; i < 2; i++) {
		e->conn = conn[i];
		next_event(e, RPMA_CONN_CLOSED);
		OK(rpma_conn_disconnect(e->conn));
		OK(rpma_conn_delete(&e->conn));
	}
	OK(rpma_srq_cfg_delete(&cfg));
	OK(rpma_srq_delete(&srq));
	close_peer(e);
}

static void srq_client(struct end *e)
{
	struct end two = { 0 };
	int i;

	client_open(e);
	client_open(&two);
	for (i = 0; i < 2; i++) {
		OK(rpma_send(e->conn, e->mr, 0, MSG, RPMA_F_COMPLETION_ALWAYS, e));
		OK(rpma_send(two.conn, two.mr, 0, MSG, RPMA_F_COMPLETION_ALWAYS, e));
		completion(e->cq, e, IBV_WC_SEND);
		completion(two.cq, e, IBV_WC_SEND);
	}
	client_close(e);
	client_close(&two);
}

static const struct test {
	const char *name;
	void (*server)(struct end *e);
	void (*client)(struct end *e);
} tests[] = {
	{ "peer", NULL, peer_client },
	{ "endpoint", NULL, endpoint_client },
	{ "connect", connect_server, connect_client },
	{ "read", read_server, read_client },
	{ "write", write_server, write_client },
	{ "flush", flush_server, flush_client },
	{ "message", message_server, message_client },
	{ "channel", channel_server, channel_client },
	{ "srq", srq_server, srq_client },
};

static int run(const struct test *test)
{
	struct end e = { 0 };
	int pipes[2], status = 0;
	pid_t pid = 0;
	char byte;

	OK(pipe(pipes));
	go_fd = pipes[0];
	ready_fd = pipes[1];
	if (test->server) {
		pid = fork();
		if (!pid) {
			/* A client that has failed does not come back. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			side = "server";
			test->server(&e);
			exit(0);
		}
		close(ready_fd);
		IS(read(go_fd, &byte, 1), 1);
	}
	side = "client";
	test->client(&e);
	if (pid)
		IS(waitpid(pid, &status, 0), pid);
	return status ? 1 : 0;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 4) {
		fprintf(stderr, "usage: rpma ADDRESS PORT TEST\n");
		return 2;
	}
	addr = argv[1];
	port = argv[2];
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);
	alarm(180);
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		if (!strcmp(argv[3], tests[i].name))
			return run(&tests[i]);
	fprintf(stderr, "rpma: no test %s\n", argv[3]);
	return 2;
}
