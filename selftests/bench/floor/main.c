// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The benchmark's floor: the loops of ../loops.c in the kernel, without a
 * program.  A case is written to /sys/module/floor/parameters/run in the form
 * that bench takes, such as
 *
 *   latency op=write size=64 mode=poll ms=200
 *   rate op=write size=64 depth=64 batch=16 conns=4 threads=4
 *
 * and its result is read from the same file, as one line of JSON.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "floor.h"

#define FLOOR_MAX_CONNS		1024
#define FLOOR_MAX_THREADS	64

static DEFINE_MUTEX(floor_lock);
char floor_result[512] = "{}";

static int floor_parse_one(struct floor_config *config, char *word)
{
	const struct {
		const char *name;
		char *text;
		unsigned long *number;
	} params[] = {
		{ .name = "op", .text = config->op },
		{ .name = "mode", .text = config->mode },
		{ .name = "addr", .text = config->addr },
		{ .name = "size", .number = &config->size },
		{ .name = "ms", .number = &config->ms },
		{ .name = "ops", .number = &config->ops },
		{ .name = "depth", .number = &config->depth },
		{ .name = "batch", .number = &config->batch },
		{ .name = "last", .number = &config->last },
		{ .name = "conns", .number = &config->conns },
		{ .name = "threads", .number = &config->threads },
		{ .name = "recvs", .number = &config->recvs },
	};
	char *name = strsep(&word, "="), *end;
	unsigned int i;

	for (i = 0; word && i < ARRAY_SIZE(params); i++) {
		if (strcmp(name, params[i].name))
			continue;
		if (params[i].text)
			return strscpy(params[i].text, word, sizeof(config->op)) < 0 ? -EINVAL : 0;
		*params[i].number = memparse(word, &end);
		return end == word || *end ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int floor_check(struct floor_config *config)
{
	if (!strcmp(config->op, "write"))
		config->opcode = IB_WR_RDMA_WRITE;
	else if (!strcmp(config->op, "read"))
		config->opcode = IB_WR_RDMA_READ;
	else if (!strcmp(config->op, "send"))
		config->opcode = IB_WR_SEND;
	else
		return -EINVAL;
	config->sends = config->opcode == IB_WR_SEND;
	config->sleeps = !strcmp(config->mode, "sleep");
	if (!config->batch || config->batch > FLOOR_MAX_BATCH ||
	    config->batch > config->depth || config->depth > SZ_4K ||
	    !config->conns || config->conns > FLOOR_MAX_CONNS ||
	    !config->threads || config->threads > FLOOR_MAX_THREADS ||
	    config->conns % config->threads || config->ms > 60 * MSEC_PER_SEC ||
	    config->size > SZ_4M)
		return -EINVAL;
	return 0;
}

static int floor_parse(struct floor_config *config, char *line)
{
	char *word = strsep(&line, " ");
	int ret = 0;

	if (strscpy(config->kind, word, sizeof(config->kind)) < 0)
		return -EINVAL;
	while (!ret && line) {
		word = strsep(&line, " ");
		if (*word)
			ret = floor_parse_one(config, word);
	}
	return ret ?: floor_check(config);
}

static int floor_run(struct floor_world *w, char *line)
{
	struct floor_config *config = &w->config;
	int (*measure)(struct floor_world *w);
	int ret;

	*config = (struct floor_config) {
		.op = "write", .mode = "poll", .addr = "10.0.0.1", .size = 64,
		.ms = 200, .depth = 1, .batch = 1, .conns = 1, .threads = 1,
		.recvs = 1,
	};
	ret = floor_parse(config, line);
	if (ret)
		return ret;
	if (!strcmp(config->kind, "latency"))
		measure = floor_latency;
	else if (!strcmp(config->kind, "echo"))
		measure = floor_echo;
	else if (!strcmp(config->kind, "rate"))
		measure = floor_rate;
	else
		return -EINVAL;
	if (measure != floor_rate)
		config->depth = max(config->depth, 64ul);
	ret = floor_open(w);
	if (!ret)
		ret = measure(w);
	floor_close(w);
	return ret;
}

static int floor_set(const char *val, const struct kernel_param *kp)
{
	struct floor_world *w = kzalloc(sizeof(*w), GFP_KERNEL);
	char *line = kstrdup(val, GFP_KERNEL);
	int ret = -ENOMEM;

	if (w && line) {
		mutex_lock(&floor_lock);
		strscpy(floor_result, "{}", sizeof(floor_result));
		ret = floor_run(w, strim(line));
		mutex_unlock(&floor_lock);
	}
	kfree(line);
	kfree(w);
	return ret;
}

static int floor_get(char *buf, const struct kernel_param *kp)
{
	int ret;

	mutex_lock(&floor_lock);
	ret = sysfs_emit(buf, "%s\n", floor_result);
	mutex_unlock(&floor_lock);
	return ret;
}

static const struct kernel_param_ops floor_ops = {
	.set = floor_set,
	.get = floor_get,
};

module_param_cb(run, &floor_ops, NULL, 0600);
MODULE_PARM_DESC(run, "Write: a case to measure.  Read: the figures");

MODULE_DESCRIPTION("The same loops in the kernel, for the benchmark of rdma_post");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("Dual BSD/GPL");
