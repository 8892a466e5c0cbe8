// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Endpoints and synchronous ids; two threads, or two processes. */
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static char port_str[8] = "7480";

static void names(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct sockaddr_in *sin, src = ip4(server_addr, 9);

	ok(rdma_getaddrinfo(NULL, NULL, NULL, &res) == -1 && errno == EINVAL);
	ok(!rdma_getaddrinfo("10.0.0.1", "7471", &hints, &res));
	sin = (struct sockaddr_in *)res->ai_dst_addr;
	ok(res->ai_family == AF_INET && res->ai_dst_len == sizeof(*sin));
	ok(sin->sin_port == htons(7471) && !res->ai_src_len);
	ok(res->ai_qp_type == IBV_QPT_RC && res->ai_port_space == RDMA_PS_TCP);
	ok(!res->ai_flags && !res->ai_connect_len && !res->ai_next);
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_PASSIVE;
	ok(!rdma_getaddrinfo(NULL, "7471", &hints, &res));
	ok(res->ai_flags == RAI_PASSIVE && res->ai_src_len &&
	   !res->ai_dst_len);
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_NUMERICHOST | RAI_FAMILY;
	hints.ai_family = AF_INET6;
	hints.ai_src_addr = (struct sockaddr *)&src;
	hints.ai_src_len = sizeof(src);
	ok(!rdma_getaddrinfo("::1", "1", &hints, &res));
	ok(res->ai_family == AF_INET6 &&
	   res->ai_dst_len == sizeof(struct sockaddr_in6));
	ok(res->ai_src_len == sizeof(src) &&
	   !memcmp(res->ai_src_addr, &src, sizeof(src)));
	rdma_freeaddrinfo(res);
	ok(rdma_getaddrinfo("no.numeric.host", "1", &hints, &res));
	errno = 0;
	printf("# returns %d errno %d for a name\n",
	       rdma_getaddrinfo("no.numeric.host", "1", &hints, &res), errno);

	hints = (struct rdma_addrinfo) {
		.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC,
		.ai_family = AF_INET, .ai_dst_len = sizeof(src),
		.ai_dst_addr = (struct sockaddr *)&src,
	};
	ok(!rdma_getaddrinfo(NULL, NULL, &hints, &res));
	ok(res->ai_dst_len == sizeof(src) && res->ai_qp_type == IBV_QPT_RC &&
	   !memcmp(res->ai_dst_addr, &src, sizeof(src)));
	rdma_freeaddrinfo(res);
}

static struct rdma_cm_id *endpoint(int flags, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo hints = {
		.ai_port_space = RDMA_PS_TCP, .ai_flags = flags,
	}, *res;
	struct rdma_cm_id *id;

	need(!rdma_getaddrinfo(server_addr, port_str, &hints, &res));
	if (rdma_create_ep(&id, res, NULL, attr))
		id = NULL;
	rdma_freeaddrinfo(res);
	return id;
}

/*
 * Echoes one message, takes one more, and parts.  The last one is there since
 * rdma_rxe tells a receiver of a message before it acknowledges it: who
 * disconnects at once leaves the sender without a completion.
 */
static void serve(struct rdma_cm_id *listen, const char *reject)
{
	static char buf[64];
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	need(!rdma_get_request(listen, &id));
	need(id->qp && id->verbs && id->pd && id->channel != listen->channel);
	need(id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	need(id->event->listen_id == listen && id->event->id == id);
	if (reject) {
		need(!rdma_reject(id, reject, strlen(reject)));
		rdma_destroy_ep(id);
		return;
	}
	need(mr = rdma_reg_msgs(id, buf, sizeof(buf)));
	need(!rdma_post_recv(id, NULL, buf, sizeof(buf), mr));
	need(!rdma_post_recvv(id, NULL, NULL, 0));
	need(!rdma_accept(id, NULL));
	need(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	need(rdma_get_recv_comp(id, &wc) == 1 && !wc.status);
	need(!rdma_post_send(id, NULL, buf, wc.byte_len, mr, 0));
	need(rdma_get_send_comp(id, &wc) == 1 && !wc.status);
	need(rdma_get_recv_comp(id, &wc) == 1 && !wc.status);
	need(!rdma_disconnect(id));
	need(id->event->event == RDMA_CM_EVENT_DISCONNECTED);
	need(!rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
}

static void request(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	char out[] = "hello", in[64] = "";
	struct ibv_mr *rmr, *smr;
	struct rdma_cm_id *id;
	struct ibv_wc wc;

	attr.qp_type = 0;
	need(id = endpoint(0, &attr));
	ok(id->qp && id->pd && id->send_cq_channel && id->recv_cq_channel);
	ok(attr.qp_type == IBV_QPT_RC && attr.cap.max_send_wr >= 16);
	ok(rdma_get_dst_port(id) == htons(atoi(port_str)));
	need(rmr = rdma_reg_msgs(id, in, sizeof(in)));
	need(smr = rdma_reg_msgs(id, out, sizeof(out)));
	ok(!rdma_post_recv(id, in, in, sizeof(in), rmr));
	ok(!rdma_connect(id, NULL));
	ok(id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	ok(!rdma_post_send(id, NULL, out, 6, smr, 0));
	ok(rdma_get_send_comp(id, &wc) == 1 && !wc.status);
	ok(rdma_get_recv_comp(id, &wc) == 1 && !wc.status);
	ok(wc.byte_len == 6 && !strcmp(in, "hello"));
	ok(wc.wr_id == (uintptr_t)in);
	ok(!rdma_post_sendv(id, NULL, NULL, 0, 0));
	ok(rdma_get_send_comp(id, &wc) == 1 && !wc.status);
	ok(!rdma_disconnect(id));
	ok(!rdma_dereg_mr(rmr) && !rdma_dereg_mr(smr));
	rdma_destroy_ep(id);
}

static void *server_thread(void *listen)
{
	serve(listen, NULL);
	serve(listen, NULL);
	serve(listen, "busy");
	return NULL;
}

static void rejected(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_id *id;

	need(id = endpoint(0, &attr));
	ok(rdma_connect(id, NULL) == -1 && errno == ECONNREFUSED);
	ok(id->event && id->event->event == RDMA_CM_EVENT_REJECTED);
	ok(id->event->param.conn.private_data_len >= 4 &&
	   !memcmp(id->event->param.conn.private_data, "busy", 4));
	rdma_destroy_ep(id);
}

static void threads(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_id *listen, *id;
	pthread_t thread;

	need(listen = endpoint(RAI_PASSIVE, &attr));
	ok(!listen->qp && listen->channel);
	need(!rdma_listen(listen, 4));
	need(!pthread_create(&thread, NULL, server_thread, listen));
	request();
	request();
	rejected();
	need(!pthread_join(thread, NULL));

	/* Nobody listens any more. */
	rdma_destroy_ep(listen);
	need(id = endpoint(0, &attr));
	ok(rdma_connect(id, NULL) == -1 && errno == ECONNREFUSED);
	rdma_destroy_ep(id);
}

static void processes(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_id *listen;
	int status, ready[2];
	pid_t pid;
	char c;

	strcpy(port_str, "7481");
	need(!pipe(ready));
	fflush(stdout);
	pid = fork();
	need(pid >= 0);
	if (!pid) {
		/* So that the parent's read ends if this one fails. */
		close(ready[0]);
		need(listen = endpoint(RAI_PASSIVE, &attr));
		need(!rdma_listen(listen, 4));
		need(write(ready[1], "r", 1) == 1);
		serve(listen, NULL);
		rdma_destroy_ep(listen);
		_exit(0);
	}
	close(ready[1]);
	need(read(ready[0], &c, 1) == 1);
	request();
	need(waitpid(pid, &status, 0) == pid);
	ok(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void interruption(void)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_id *listen, *id;

	strcpy(port_str, "7482");
	need(!sigaction(SIGALRM, &act, NULL));
	need(listen = endpoint(RAI_PASSIVE, &attr));
	need(!rdma_listen(listen, 4));
	alarm(1);
	ok(rdma_get_request(listen, &id) == -1 && errno == EINTR);
	rdma_destroy_ep(listen);
}

static void misuse(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *other;

	need(ch = rdma_create_event_channel());
	need(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	ok(rdma_get_request(id, &other) == -1 && errno == EINVAL);
	need(!rdma_migrate_id(id, NULL));
	ok(rdma_migrate_id(id, NULL) == -1 && errno == EINVAL);
	ok(id->channel != ch);
	ok(!rdma_migrate_id(id, ch) && id->channel == ch);
	ok(!rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);

	/* Synchronous, by hand. */
	ok(!rdma_create_id(NULL, &id, ch, RDMA_PS_TCP));
	ok(id->channel && id->context == ch);
	struct sockaddr_in sin = ip4(server_addr, 7483);

	ok(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 10000));
	ok(id->event && id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(!rdma_resolve_route(id, 10000) && id->route.num_paths == 1);
	ok(id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
	ok(!rdma_destroy_id(id));
	ok(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	sin = ip4("192.0.2.1", 7483);
	ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 500) == -1);
	printf("# unreachable: errno %d event %d\n", errno,
	       id->event ? (int)id->event->event : -1);
	ok(!rdma_destroy_id(id));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		server_addr = argv[1];
	processes();
	names();
	threads();
	interruption();
	misuse();
	return tap_done();
}
