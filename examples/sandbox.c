// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA in a sandbox.  This is the supervisor: it makes the connection, which takes
 * addresses, and gives a worker the device as a descriptor.  The worker owns the
 * queue pair and the memory, and the supervisor does not see the data.
 *
 * Who has the descriptor has all that its opener has made by it, and can make more,
 * connections too: take a supervisor of its own for each worker.
 *
 * Usage: sandbox WORKER            waits for one client
 *        sandbox WORKER SERVER     is the client
 *
 * WORKER is sandbox_worker, which is looked for in PATH.
 */
#include <sys/wait.h>

#include "sandbox.h"

#define PORT "7476"

/*
 * Starts the worker before there is anything that it could inherit.  In a session of
 * its own it cannot type into the terminal.
 */
static pid_t start(char *path, int *sock)
{
	int socks[2];
	pid_t pid;

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), "socketpair");
	pid = fork();
	check(pid < 0, "fork");
	if (!pid) {
		check(setsid() < 0, "setsid");
		check(dup2(socks[1], STDIN_FILENO) < 0, "dup2");
		execlp(path, path, NULL);
		check(1, path);
	}
	close(socks[1]);
	*sock = socks[0];
	return pid;
}

static void bring_to(struct rdma_cm_id *id, int sock, enum ibv_qp_state state)
{
	struct step step = { .attr.qp_state = state };
	uint32_t num;

	check(rdma_init_qp_attr(id, &step.attr, &step.mask), "rdma_init_qp_attr");
	tell(sock, &step, sizeof(step));
	learn(sock, &num, sizeof(num));
}

/* Connects the worker's queue pair; the id has none of its own. */
static void make_connection(struct rdma_cm_id *id, int sock, bool client)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	pass(sock, id->verbs->cmd_fd);
	learn(sock, &param.qp_num, sizeof(param.qp_num));
	bring_to(id, sock, IBV_QPS_INIT);
	if (client)
		check(rdma_connect(id, &param), "rdma_connect");
	bring_to(id, sock, IBV_QPS_RTR);
	bring_to(id, sock, IBV_QPS_RTS);
	if (client)
		check(rdma_establish(id), "rdma_establish");
	else
		check(rdma_accept(id, &param), "rdma_accept");
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listening = NULL, *id;
	struct rdma_addrinfo *info;
	struct step last = {};
	int sock, status;
	pid_t worker;

	if (argc < 2) {
		fprintf(stderr, "usage: sandbox WORKER [SERVER]\n");
		return 2;
	}
	last.first = argc > 2;
	worker = start(argv[1], &sock);

	info = address_of(argv[2], PORT);
	check(rdma_create_ep(&id, info, NULL, NULL), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	if (argc < 3) {
		listening = id;
		check(rdma_listen(listening, 1), "rdma_listen");
		check(rdma_get_request(listening, &id), "rdma_get_request");
	}
	make_connection(id, sock, argc > 2);
	tell(sock, &last, sizeof(last));
	check(waitpid(worker, &status, 0) != worker, "waitpid");
	printf("supervisor: the worker has ended, status %d\n", status);

	rdma_disconnect(id);
	rdma_destroy_ep(id);
	if (listening)
		rdma_destroy_ep(listening);
	close(sock);
	return status != 0;
}
