// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module's numbers in sysfs, unloading and loading it, and waiting for
 * threads, quiet and new devices.
 */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/syscall.h>

#include "cgroup.h"
#include "rpost_test.h"

#define NO_OTHER	0x07e7	/* the wr_id of a request that no other precedes */

/* Return a number from a file, or -1. */
long rp_file_number(const char *path)
{
	FILE *f = fopen(path, "r");
	long value = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

/* Return a line of a device's file in sysfs, or an empty string. */
const char *rp_sysfs(const struct rpost_query_device *dev, const char *file)
{
	static char line[128];
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", (char *)dev->name, file);
	line[0] = 0;
	f = fopen(path, "re");
	if (f) {
		if (fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = 0;
		fclose(f);
	}
	return line;
}

/* Get an address whose resolution fails after a while, by the command RPOST_TEST_LATE. */
int rp_late_address(struct in_addr *addr)
{
	FILE *f = popen(getenv("RPOST_TEST_LATE"), "re");
	char text[INET_ADDRSTRLEN + 1] = "";

	if (!f)
		return -errno;
	if (fscanf(f, "%16s", text) != 1)
		text[0] = 0;
	return pclose(f) || inet_pton(AF_INET, text, addr) != 1 ? -EINVAL : 0;
}

/* Return a number from one of the module's files in sysfs, or -1. */
long rp_module_number(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/rdma_post/%s", name);
	return rp_file_number(path);
}

/* Set one of the module's parameters; needs root. */
int rp_set_parameter(const char *name, const char *text)
{
	return cg_put(RP_PARAMETERS, name, text);
}

int rp_set_number(const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	return rp_set_parameter(name, text);
}

/* Unload the module if it is not in use: 0, -EAGAIN, or another negative errno. */
int rp_unload_module(void)
{
	return syscall(SYS_delete_module, "rdma_post", O_NONBLOCK) ? -errno : 0;
}

/* The same, once the kernel has dropped the last reference, which it may do late. */
int rp_unload_soon(void)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	while ((ret = rp_unload_module()) == -EAGAIN && rp_now_ms() < end)
		usleep(10000);
	return ret;
}

/* Load the module's file with parameters as insmod takes them. */
int rp_load_module(const char *path, const char *params)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, params, 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* The file and the parameters that RPOST_TEST_MODULE and RPOST_TEST_PARAMS name. */
int rp_load_again(void)
{
	const char *params = getenv("RPOST_TEST_PARAMS");

	return rp_load_module(getenv("RPOST_TEST_MODULE"), params ? params : "");
}

/* Wait until the module's use count is @want; return the last one read. */
long rp_wait_refcnt(long want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long seen;

	while ((seen = rp_module_number("refcnt")) != want &&
	       rp_now_ms() < end)
		usleep(1000);
	return seen;
}

/*
 * The same for files in a cycle of sockets that are queued in each other, which the
 * kernel collects when sockets are opened or closed.
 */
long rp_wait_collected(long want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int socks[2];
	long seen;

	while ((seen = rp_module_number("refcnt")) != want &&
	       rp_now_ms() < end) {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, socks))
			return -errno;
		close(socks[0]);
		close(socks[1]);
		usleep(1000);
	}
	return seen;
}

/* Wait until a file has @want objects; return the last number read. */
int rp_wait_objects(int fd, int want)
{
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS;
	int now;

	while ((now = rp_num_objects(fd)) < want && rp_now_ms() < end)
		usleep(500);
	return now;
}

/*
 * Wait until a thread sleeps.  It stores its thread id in @tid just before the
 * call in which it is to sleep.
 */
bool rp_wait_asleep(const pid_t *tid)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	char path[64], state = 0;
	pid_t id;
	FILE *f;

	while (state != 'S' && rp_now_ms() < end) {
		usleep(1000);
		id = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
		f = id ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	return state == 'S';
}

/* True if no completion arrives for TEST_QUIET_MS. */
bool rp_quiet_cq(struct rp_cq *cq)
{
	uint64_t end = rp_now_ms() + TEST_QUIET_MS;
	struct rpost_wc wc;

	do {
		usleep(1000);
		if (rp_poll_cq(cq, &wc))
			return false;
	} while (rp_now_ms() < end);
	return true;
}

/*
 * Post an empty write, and return its status if its completion is the next of
 * @end, which has no other then, or else -1.  A queue pair in ERR flushes it.
 */
int rp_no_other(struct rp_end *end)
{
	struct rp_send write = rp_empty_send(RPOST_WR_RDMA_WRITE, NO_OTHER);
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_wc wc;
	int ret;

	/* Requests without completions may still fill the queue. */
	do {
		ret = rp_post_send(end, &write);
	} while (ret == -ENOMEM && rp_now_ms() < until);
	if (ret || rp_wait_cq(&end->cq, &wc) != 1)
		return -1;
	return wc.wr_id == NO_OTHER && wc.qp_num == end->qp_num ? (int)wc.status : -1;
}

void *rp_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Run a command whose struct of @size bytes is in read-only memory. */
int rp_ioctl_unanswered(int fd, unsigned long nr, const void *cmd, size_t size)
{
	void *page = rp_pages(4096);
	int ret;

	if (!page)
		return -ENOMEM;
	memcpy(page, cmd, size);
	if (mprotect(page, 4096, PROT_READ))
		return -errno;
	ret = rp_ioctl(fd, nr, page);
	munmap(page, 4096);
	return ret;
}

/*
 * Register memory, and wait until a new device has an address, which fast
 * registration needs.
 */
int rp_reg_mr_soon(const struct rp_end *end, void *addr, uint64_t length,
		   uint32_t access, struct rpost_reg_mr *mr)
{
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	do {
		ret = rp_reg_mr(end->fd, end->pd, addr, length, access, mr);
	} while (ret == -ENETDOWN && rp_now_ms() < until && !usleep(10000));
	return ret;
}
