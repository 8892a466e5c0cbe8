/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of a key-value store, which its clients read by RDMA alone.
 *
 * A client reads a bucket while the server may be writing into it: it can see some
 * bytes of the old value and some of the new one.  So each slot has a checksum of
 * all the rest.  If it is not right the read was torn, and the client reads again.
 *
 * Both sides must have the same byte order.
 */
#ifndef KV_H
#define KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KV_PORT "7475"
#define KV_BUCKETS 128
#define KV_WAYS 4		/* slots in a bucket; a READ takes all */
#define KV_WORDS 60		/* 64-bit words of a value */

struct kv_slot {
	uint64_t sum;		/* of what follows; an empty slot is all 0 */
	uint64_t key;
	uint64_t version;	/* 1, 2, ... of this key */
	uint64_t value[KV_WORDS];
};

/* Where the table is: private data of the connection. */
struct kv_table {
	uint64_t addr;
	uint32_t rkey;
	uint32_t buckets;
};

struct kv_put {
	uint64_t key;
	uint64_t value[KV_WORDS];
};

/* The answer to a PUT: the version that it made, or 0 if the bucket is full. */
struct kv_done {
	uint64_t version;
};

static inline uint64_t kv_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

static inline uint32_t kv_bucket(uint64_t key)
{
	return kv_mix(1, key) % KV_BUCKETS;
}

static inline uint64_t kv_sum(const struct kv_slot *slot)
{
	uint64_t sum = kv_mix(kv_mix(2, slot->key), slot->version);
	int i;

	for (i = 0; i < KV_WORDS; i++)
		sum = kv_mix(sum, slot->value[i]);
	return sum;
}

/*
 * Returns the key's slot in a bucket that was read.  If it is NULL and *torn is
 * true the key may be there: read again.
 */
static inline struct kv_slot *kv_find(struct kv_slot *bucket, uint64_t key, bool *torn)
{
	struct kv_slot *slot, *found = NULL;

	*torn = false;
	for (slot = bucket; slot < bucket + KV_WAYS; slot++) {
		if (!slot->version && !slot->sum)
			continue;
		if (slot->sum != kv_sum(slot))
			*torn = true;
		else if (slot->key == key)
			found = slot;
	}
	return found;
}

#endif
