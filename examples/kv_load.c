// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Puts load on kv_server, checks all that it reads, and prints percentiles of the
 * latencies.  Several may run at a time.
 *
 * Usage: kv_load SERVER [OPERATIONS [PUTS]]    PUTS in 100 operations, 10 by default
 *
 * The first word of a value is random, and tells the others.  Versions grow.
 */
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "kv.h"

#define KEYS 16

static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static struct {
	struct kv_slot bucket[KV_WAYS];		/* what was read last */
	struct kv_put put;
	struct kv_done done;
} memory;
static uint64_t seen[KEYS];			/* newest versions */
static int torn_reads;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Word i of the value that begins with @first. */
static uint64_t word(uint64_t first, uint64_t key, int i)
{
	return i ? kv_mix(first + i, key) : first;
}

/* Reads the key's bucket, until its slot is not torn. */
static void get(const struct kv_table *table, uint64_t key)
{
	uint64_t addr = table->addr + kv_bucket(key) * sizeof(memory.bucket);
	struct kv_slot *slot;
	struct ibv_wc wc;
	bool torn;
	int i;

	for (;;) {
		check(rdma_post_read(id, NULL, memory.bucket, sizeof(memory.bucket),
				     mr, 0, addr, table->rkey), "rdma_post_read");
		await(id, rdma_get_send_comp, &wc);
		slot = kv_find(memory.bucket, key, &torn);
		if (slot || !torn)
			break;
		torn_reads++;
	}
	expect(slot && slot->version >= seen[key], "GET: nothing, or an old version");
	seen[key] = slot->version;
	for (i = 0; i < KV_WORDS; i++)
		expect(slot->value[i] == word(slot->value[0], key, i), "GET: wrong value");
}

static void put(uint64_t key, uint64_t first)
{
	struct ibv_wc wc;
	int i;

	memory.put.key = key;
	for (i = 0; i < KV_WORDS; i++)
		memory.put.value[i] = word(first, key, i);
	check(rdma_post_recv(id, NULL, &memory.done, sizeof(memory.done), mr),
	      "rdma_post_recv");
	check(rdma_post_send(id, NULL, &memory.put, sizeof(memory.put), mr, 0),
	      "rdma_post_send");
	await(id, rdma_get_send_comp, &wc);
	await(id, rdma_get_recv_comp, &wc);
	expect(memory.done.version > seen[key], "PUT: bucket full, or an old version");
	seen[key] = memory.done.version;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *what, uint64_t *ns, int count)
{
	static const int permille[] = { 500, 900, 990, 999, 1000 };
	int i;

	qsort(ns, count, sizeof(*ns), compare);
	printf("%d %s, us at 50, 90, 99, 99.9 and 100 %%:", count, what);
	for (i = 0; count && i < 5; i++)
		printf(" %.1f", ns[(count - 1ull) * permille[i] / 1000] / 1000.0);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1,
			 .max_recv_wr = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	struct rdma_conn_param param = { .initiator_depth = 1, .retry_count = 7,
					 .rnr_retry_count = 7 };
	int count, percent, done[2] = {}, i, is_put;
	struct kv_table table = {};
	uint64_t *ns[2], start, key;

	if (argc < 2) {
		fprintf(stderr, "usage: kv_load SERVER [OPERATIONS [PUTS]]\n");
		return 2;
	}
	count = number(argv[2], 10000);
	percent = number(argc > 3 ? argv[3] : NULL, 10);
	ns[0] = calloc(count, 8);
	ns[1] = calloc(count, 8);
	check(!ns[0] || !ns[1], "calloc");
	id = client_of(argv[1], KV_PORT, &attr);
	mr = rdma_reg_msgs(id, &memory, sizeof(memory));
	check(!mr, "rdma_reg_msgs");
	check(rdma_connect(id, &param), "rdma_connect");
	if (id->event->param.conn.private_data_len >= sizeof(table))
		memcpy(&table, id->event->param.conn.private_data, sizeof(table));
	expect(table.buckets == KV_BUCKETS, "the server's table");

	srandom(getpid());
	for (i = 0; i < count; i++) {
		key = i < KEYS ? i : random() % KEYS;
		is_put = i < KEYS || random() % 100 < percent;
		start = now();
		if (is_put)
			put(key, random());
		else
			get(&table, key);
		ns[is_put][done[is_put]++] = now() - start;
	}
	print("GETs", ns[0], done[0]);
	print("PUTs", ns[1], done[1]);
	printf("%d torn reads were tried again\n", torn_reads);

	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	free(ns[0]);
	free(ns[1]);
	return 0;
}
