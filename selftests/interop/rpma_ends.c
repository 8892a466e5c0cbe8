// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opens, uses and closes the ends of a librpma connection. */
#include <sys/mman.h>

#include "rpma.h"

const char *addr, *port, *side = "both";
int ready_fd, go_fd;

void fail(int line, const char *what, long value)
{
	fprintf(stderr, "%s: line %d: %s is %ld (errno %d, %s)\n", side, line,
		what, value, errno, strerror(errno));
	exit(1);
}

void fill(unsigned char *mem, size_t len, unsigned int seed)
{
	while (len--)
		*mem++ = seed = seed * 1103515245 + 12345;
}

void open_peer(struct end *e, enum rpma_util_ibv_context_type type)
{
	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
		    RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
		    RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT |
		    RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
	struct ibv_context *context;

	OK(rpma_utils_get_ibv_context(addr, type, &context));
	OK(rpma_peer_new(context, &e->peer));
	e->mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TRUE(e->mem != MAP_FAILED);
	OK(rpma_mr_reg(e->peer, e->mem, SIZE, usage, &e->mr));
	OK(rpma_conn_cfg_new(&e->cfg));
}

void next_event(struct end *e, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	OK(rpma_conn_next_event(e->conn, &event));
	if (event != wanted)
		fprintf(stderr, "%s: event %s\n", side,
			rpma_utils_conn_event_2str(event));
	IS(event, wanted);
}

static void connected(struct end *e)
{
	next_event(e, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_cq(e->conn, &e->cq));
	OK(rpma_conn_get_rcq(e->conn, &e->rcq));
}

void listen_here(struct end *e)
{
	open_peer(e, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	OK(rpma_ep_listen(e->peer, addr, port, &e->ep));
	IS(write(ready_fd, "", 1), 1);
}

struct rpma_conn_private_data describe(struct end *e)
{
	struct rpma_conn_private_data data = { &e->hello, sizeof(e->hello) };
	struct rpma_peer_cfg *pcfg;
	size_t size;

	OK(rpma_mr_get_descriptor_size(e->mr, &size));
	TRUE(size <= sizeof(e->hello.mr));
	OK(rpma_mr_get_descriptor(e->mr, e->hello.mr));
	e->hello.mr_size = size;
	OK(rpma_peer_cfg_new(&pcfg));
	OK(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	OK(rpma_peer_cfg_get_descriptor_size(pcfg, &size));
	TRUE(size <= sizeof(e->hello.cfg));
	OK(rpma_peer_cfg_get_descriptor(pcfg, e->hello.cfg));
	e->hello.cfg_size = size;
	OK(rpma_peer_cfg_delete(&pcfg));
	return data;
}

struct rpma_conn_req *next_request(struct end *e)
{
	struct rpma_conn_req *req;

	OK(rpma_ep_next_conn_req(e->ep, e->cfg, &req));
	return req;
}

void answer(struct end *e, struct rpma_conn_req *req)
{
	struct rpma_conn_private_data data = describe(e);

	OK(rpma_conn_req_connect(&req, &data, &e->conn));
	connected(e);
	IS(write(ready_fd, "", 1), 1);
}

void server_open(struct end *e)
{
	listen_here(e);
	answer(e, next_request(e));
}

/* Take the description of the server's memory from its private data. */
static void learn(struct end *e)
{
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *pcfg;
	struct hello hello;
	size_t size;

	OK(rpma_conn_get_private_data(e->conn, &data));
	TRUE(data.ptr && data.len >= sizeof(hello));
	memcpy(&hello, data.ptr, sizeof(hello));
	OK(rpma_mr_remote_from_descriptor(hello.mr, hello.mr_size, &e->remote));
	OK(rpma_mr_remote_get_size(e->remote, &size));
	IS(size, SIZE);
	OK(rpma_peer_cfg_from_descriptor(hello.cfg, hello.cfg_size, &pcfg));
	OK(rpma_conn_apply_remote_peer_cfg(e->conn, pcfg));
	OK(rpma_peer_cfg_delete(&pcfg));
}

/*
 * The server listens before the client's test begins.  The client goes on only
 * when the server has seen the RTU, since ib_cm's threads may look at a DREQ
 * first.
 */
void client_open(struct end *e)
{
	struct rpma_conn_req *req;
	char byte;

	if (!e->peer)
		open_peer(e, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	OK(rpma_conn_req_new(e->peer, addr, port, e->cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &e->conn));
	connected(e);
	IS(read(go_fd, &byte, 1), 1);
	learn(e);
}

void close_peer(struct end *e)
{
	if (e->ep)
		OK(rpma_ep_shutdown(&e->ep));
	OK(rpma_mr_dereg(&e->mr));
	OK(rpma_conn_cfg_delete(&e->cfg));
	OK(rpma_peer_delete(&e->peer));
}

void server_close(struct end *e)
{
	next_event(e, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(e->conn));
	OK(rpma_conn_delete(&e->conn));
	close_peer(e);
}

void client_close(struct end *e)
{
	OK(rpma_conn_disconnect(e->conn));
	next_event(e, RPMA_CONN_CLOSED);
	OK(rpma_mr_remote_delete(&e->remote));
	OK(rpma_conn_delete(&e->conn));
	close_peer(e);
}

/* Wait for a completion, which must succeed and be of this operation. */
struct ibv_wc completion(struct rpma_cq *cq, const void *context,
			 enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = { 0 };
	int ret, got = 0;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, &got)) == RPMA_E_NO_COMPLETION)
		OK(rpma_cq_wait(cq));
	OK(ret);
	IS(got, 1);
	IS(wc.status, IBV_WC_SUCCESS);
	IS(wc.opcode, opcode);
	TRUE(wc.wr_id == (uintptr_t)context);
	return wc;
}

void no_completion(struct rpma_cq *cq)
{
	struct ibv_wc wc;

	IS(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
}
