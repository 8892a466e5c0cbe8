// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Usage: open_mode MODE FILE: open a file with these flags of open(2), and use ioctl(2). */
#include <err.h>
#include <fcntl.h>
#include <rdma/rdma_post_abi.h>
#include <stdlib.h>
#include <sys/ioctl.h>

int main(int argc, char **argv)
{
	struct rpost_query query = { .size = sizeof(query) };
	int fd;

	if (argc != 3)
		errx(2, "usage: open_mode MODE FILE");
	fd = open(argv[2], atoi(argv[1]));
	if (fd < 0)
		err(1, "%s", argv[2]);
	if (ioctl(fd, RPOST_IOC_QUERY, &query))
		err(1, "RPOST_IOC_QUERY");
	return 0;
}
