// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Usage: region MIB [PIECE [hold]]
 *
 * Registers memory, in regions of PIECE MiB (MIB by default), prints what came of it, and
 * holds it until a signal.
 */
#include <err.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0, at;
	size_t piece = argc > 2 ? strtoul(argv[2], NULL, 10) << 20 : size;
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	char *buf;

	if (!size || !piece || size % piece || argc > 4)
		errx(2, "usage: region MIB [PIECE [hold]]");
	list = ibv_get_device_list(NULL);
	if (!list)
		err(1, "ibv_get_device_list");
	if (!list[0])
		errx(1, "no device");
	ctx = ibv_open_device(list[0]);
	if (!ctx)
		err(1, "ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		err(1, "ibv_alloc_pd");
	buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		err(1, "mmap");
	for (at = 0; at < size; at += piece)
		if (!ibv_reg_mr(pd, buf + at, piece, IBV_ACCESS_LOCAL_WRITE))
			err(1, "ibv_reg_mr");
	printf("registered %s MiB\n", argv[1]);
	fflush(stdout);
	if (argc == 4)
		pause();
	return 0;
}
