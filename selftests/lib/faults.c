// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared code of the tests that inject faults.
 */
#define _GNU_SOURCE
#include <kselftest.h>

#include "faults.h"

int rp_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n < 0 ? -errno : 0;
}

/* Return a number of /proc/vmstat, or 0. */
long rp_vmstat(const char *name)
{
	static char buf[16384];
	char *at;

	if (rp_read_file("/proc/vmstat", buf, sizeof(buf)))
		return 0;
	at = strstr(buf, name);
	return at ? atol(at + strlen(name)) : 0;
}

/*
 * Write the counts of the module's objects and of the pages that the kernel has
 * pinned into @buf, as text.  The counts of objects are in debugfs, which only
 * root can read; for other users they are "".
 */
void rp_counts(char *buf)
{
	char refresh[64];

	if (rp_read_file("/sys/kernel/debug/rdma_post/objects", buf,
			 RP_COUNTS - 64))
		buf[0] = 0;
	/* Reading this file makes the kernel add up its per-CPU counters. */
	rp_read_file("/proc/sys/vm/stat_refresh", refresh, sizeof(refresh));
	sprintf(buf + strlen(buf), "pins %ld\n",
		rp_vmstat("nr_foll_pin_acquired ") -
		rp_vmstat("nr_foll_pin_released "));
}

/* Wait until the counts are @want again: 0, or -ETIME after printing them. */
int rp_wait_counts(const char *want)
{
	uint64_t end = rp_now_ms() + COUNTS_MS;
	char now[RP_COUNTS];

	for (;;) {
		rp_counts(now);
		if (!strcmp(now, want))
			return 0;
		if (rp_now_ms() > end)
			break;
		usleep(5000);
	}
	fprintf(stderr, "# there was\n%s# there is\n%s", want, now);
	return -ETIME;
}

unsigned int *faults;

pid_t faults_pid;

static void __attribute__((constructor)) faults_init(void)
{
	faults = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (faults == MAP_FAILED)
		_exit(1);
	faults_pid = getpid();
}

void __attribute__((destructor)) faults_print(void)
{
	unsigned int i, sum = 0;
	const char *sep = " (";

	if (getpid() != faults_pid)
		return;
	for (i = 0; i < NUM_FAULTS; i++)
		sum += faults[i];
	printf("# faults survived: %u", sum);
	for (i = 0; i < NUM_FAULTS; i++) {
		if (!faults[i])
			continue;
		printf("%s%s: %u", sep, fault_names[i], faults[i]);
		sep = ", ";
	}
	printf("%s\n", sum ? ")" : "");
}

uint64_t msg_sum(const struct msg *m)
{
	uint64_t sum = 0x9e3779b97f4a7c15 ^ m->number;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(m->words); i++)
		sum = (sum ^ m->words[i]) * 0x100000001b3;
	return sum;
}

void msg_write(struct msg *m, uint64_t number)
{
	unsigned int i;

	m->number = number;
	for (i = 0; i < ARRAY_SIZE(m->words); i++)
		m->words[i] = (number + i) * 0xda942042e4dd58b5;
	m->sum = msg_sum(m);
}

int msgs_init(struct rp_end *end, struct msgs *msgs)
{
	msgs->m = rp_pages(rp_depth * MSG_BYTES);
	if (!msgs->m)
		return -ENOMEM;
	return rp_reg_mr(end->fd, end->pd, msgs->m, rp_depth * MSG_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &msgs->mr);
}

int msgs_exit(struct rp_end *end, struct msgs *msgs)
{
	int ret = rp_destroy(end->fd, RPOST_OBJ_MR, msgs->mr.handle);

	munmap(msgs->m, rp_depth * MSG_BYTES);
	return ret;
}

int msg_post_send(struct rp_end *end, struct msgs *msgs, uint64_t number)
{
	struct msg *m = &msgs->m[number % rp_depth];
	struct rp_send send = rp_send(RPOST_WR_SEND, number, m, MSG_BYTES,
				      msgs->mr.lkey);

	msg_write(m, number);
	return rp_post_send(end, &send);
}

/* Send up to six messages from one end to the other and check each one. */
int msgs_exchange(struct rp_end *from, struct rp_end *to)
{
	const unsigned int n = rp_depth < 6 ? rp_depth : 6;
	struct msgs out, in;
	struct rpost_wc wc = { 0 };
	unsigned int i;

	RP_TRY(msgs_init(from, &out));
	RP_TRY(msgs_init(to, &in));
	for (i = 0; i < n; i++)
		RP_TRY(msg_post_recv(to, &in, i));
	for (i = 0; i < n; i++)
		RP_TRY(msg_post_send(from, &out, i));
	for (i = 0; i < n; i++) {
		if (rp_wait_cq(&to->cq, &wc) != 1 || wc.status ||
		    wc.wr_id != i || !msg_is(&in.m[i], i) ||
		    rp_wait_cq(&from->cq, &wc) != 1 || wc.status ||
		    wc.wr_id != i) {
			printf("# message %u: the last completion has status %u, wr_id %llx, queue pair %u\n",
			       i, wc.status, (unsigned long long)wc.wr_id,
			       wc.qp_num);
			return -EPROTO;
		}
	}
	RP_TRY(msgs_exit(from, &out));
	RP_TRY(msgs_exit(to, &in));
	return 0;
}
