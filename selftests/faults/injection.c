// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Injects failures into the module's callbacks, and connects to show that
 * nothing is left of them.
 */
#define _GNU_SOURCE
#include "injection.h"

/* Wait until every count in the list of objects is 0. */
static bool nothing_left(void)
{
	uint64_t end = rp_now_ms() + INJECT_MS;
	char name[32];
	long n, sum;
	FILE *f;

	do {
		f = fopen(RP_DEBUGFS "objects", "r");
		if (!f)
			return false;
		sum = 0;
		while (fscanf(f, "%31s %ld", name, &n) == 2)
			sum += n;
		fclose(f);
		if (!sum)
			return true;
		usleep(1000);
	} while (rp_now_ms() < end);
	return false;
}

/* Two ends: the server listens, and the client may write to its memory. */
int inject_init(struct injection *in)
{
	RP_TRY(rp_end_init(&in->c));
	RP_TRY(rp_end_init(&in->s));
	RP_TRY(rp_listener(&in->s, &in->listener));
	return rp_reg_mr(in->s.fd, in->s.pd, in->buf, INJECT_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &in->mr);
}

/* Does nothing if this kernel or this user cannot inject. */
int inject_begin(struct injection *in)
{
	in->able = !geteuid() && !access(RP_DEBUGFS "injected", R_OK);
	if (!in->able)
		return 0;
	/* Objects of the previous test must not count in this one. */
	if (!nothing_left())
		return -EBUSY;
	in->buf = rp_pages(INJECT_BYTES);
	return in->buf ? inject_init(in) : -ENOMEM;
}

int inject_end(struct injection *in)
{
	static const char * const points[] = {
		"fail_backlog", "fail_request", "fail_ring", "fail_completion",
		"fail_async", "fail_drain", "fail_dereg", "fail_reg_post",
		"fail_reg_wc", "fail_reg_wait", "fail_device", "fail_device_id",
		"fail_charge", "fail_domain",
	};
	unsigned int i;

	if (!in->able)
		return 0;
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		RP_TRY(inject(points[i], 0));
	RP_TRY(inject_set_way("auto"));
	RP_TRY(inject_set_drain("10000"));
	rp_end_close(&in->c);
	rp_end_close(&in->s);
	return 0;
}

static int set_number(const char *point, const char *name, long value)
{
	char path[128], text[32];
	int fd, n, ret = 0;

	snprintf(path, sizeof(path), RP_DEBUGFS "%s/%s", point, name);
	n = snprintf(text, sizeof(text), "%ld", value);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != n)
		ret = -errno;
	close(fd);
	return ret;
}

/* Let @point fail @times times; -1 is always, 0 never. */
int inject(const char *point, long times)
{
	int ret = set_number(point, "times", times);

	return ret ? ret : set_number(point, "probability", times ? 100 : 0);
}

/* Returns how often @point has failed, or -1. */
long injected(const char *point)
{
	return rp_debug_number("injected", point);
}

bool wait_injected(const char *point, long before)
{
	uint64_t end = rp_now_ms() + INJECT_MS;

	while (injected(point) <= before && rp_now_ms() < end)
		usleep(1000);
	return injected(point) > before;
}

/* Choose how memory is registered: auto, direct or fast. */
int inject_set_way(const char *way)
{
	return rp_set_parameter("registration", way);
}

/* Choose how many ms a device has to flush. */
int inject_set_drain(const char *ms)
{
	return rp_set_parameter("drain_ms", ms);
}

int inject_write(struct injection *in)
{
	struct rpost_send_wr wr = {
		.size = sizeof(wr),
		.opcode = RPOST_WR_RDMA_WRITE,
		.send_flags = RPOST_SEND_SIGNALED,
		.remote_addr = (uintptr_t)in->buf,
		.rkey = in->mr.rkey,
	};

	return rp_post(in->c.fd, RPOST_IOC_POST_SEND, in->c.qp, &wr,
		       sizeof(wr), 1, NULL);
}

/* Post writes and wait for them, more than the queue has slots. */
int inject_writes_work(struct injection *in)
{
	struct rpost_wc wc;
	int i;

	for (i = 0; i < 3 * RP_DEPTH; i++) {
		RP_TRY(inject_write(in));
		if (rp_wait_cq(&in->c.cq, &wc) != 1)
			return -ETIME;
		if (wc.status)
			return -EIO;
	}
	return 0;
}

/* Connect, let writes complete, and disconnect. */
int inject_next_works(struct injection *in)
{
	RP_TRY(rp_join(&in->c, &in->s, in->listener, 0));
	RP_TRY(inject_writes_work(in));
	RP_TRY(rp_leave(&in->c));
	return rp_leave(&in->s);
}

static bool is_of_registrations(const char *point)
{
	return !strncmp(point, "fail_reg", 8) || !strcmp(point, "fail_dereg");
}

/*
 * Returns how many points of the one kind there are that tests must let fail;
 * @missed is how many of them have not failed.
 */
unsigned int inject_points(bool registrations, unsigned int *missed)
{
	FILE *f = fopen(RP_DEBUGFS "injected", "r");
	unsigned int points = 0;
	char name[32];
	long n;

	*missed = 0;
	while (f && fscanf(f, "%31s %ld", name, &n) == 2) {
		if (is_of_registrations(name) != registrations)
			continue;
		points++;
		printf("# %s: injected %ld times\n", name, n);
		if (n <= 0 && (strncmp(name, "fail_device", 11) || rp_can_remove()))
			++*missed;
	}
	if (f)
		fclose(f);
	printf("# injection points in callbacks: %u\n", points);
	return points;
}
