// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Mappings of completion rings.  Small rings of a file share pages, and a page is
 * mapped once for all of them.
 */
/* The offset at which mmap() finds a ring has 64 bits, in all programs. */
#define _FILE_OFFSET_BITS 64

#include <stdlib.h>
#include <sys/mman.h>

#include "core/internal.h"

#define BUCKETS	256

/* Mappings of shared pages, of all files, by the number of the page. */
static struct rpost_map *maps[BUCKETS];
/* Protects maps and their users. */
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * A thread that maps a page waits for a fork that is under way, and has the lock
 * meanwhile.  The child would never get it.
 */
void rpost_maps_before_fork(void)
{
	pthread_mutex_lock(&maps_lock);
}

void rpost_maps_after_fork(void)
{
	pthread_mutex_unlock(&maps_lock);
}

static struct rpost_map **bucket(uint64_t page)
{
	return &maps[page % BUCKETS];
}

static struct rpost_map *find(const struct rpost_file *file, uint64_t page)
{
	struct rpost_map *map;

	for (map = *bucket(page); map; map = map->next) {
		if (map->page == page && map->file == file && map->forks == rpost_forks)
			return map;
	}
	return NULL;
}

/* Returns 0 or an errno value. */
static int map_pages(struct rpost_map *map, uint64_t offset)
{
	map->addr = mmap(NULL, map->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 map->file->fd, offset);
	if (map->addr == MAP_FAILED)
		return errno;
	/* A child's copy would keep the parent's file open. */
	madvise(map->addr, map->size, MADV_DONTFORK);
	map->forks = rpost_forks;
	map->users = 1;
	if (map->page) {
		map->next = *bucket(map->page);
		*bucket(map->page) = map;
	}
	return 0;
}

struct rpost_map *rpost_map_get(struct rpost_map *spare, const struct rpost_file *file,
				uint64_t page, uint64_t offset, size_t size)
{
	struct rpost_map *map;
	int err = 0;

	spare->file = file;
	spare->page = page;
	spare->size = size;
	pthread_mutex_lock(&maps_lock);
	map = page ? find(file, page) : NULL;
	if (map)
		map->users++;
	else
		err = map_pages(spare, offset);
	pthread_mutex_unlock(&maps_lock);
	if (!map && !err)
		return spare;
	free(spare);
	if (err)
		errno = err;
	return map;
}

void rpost_map_put(struct rpost_map *map)
{
	struct rpost_map **link;
	bool last;

	if (!map)
		return;
	pthread_mutex_lock(&maps_lock);
	last = !--map->users;
	if (last && map->page) {
		link = bucket(map->page);
		while (*link != map)
			link = &(*link)->next;
		*link = map->next;
	}
	pthread_mutex_unlock(&maps_lock);
	if (!last)
		return;
	if (map->forks == rpost_forks)
		munmap(map->addr, map->size);
	free(map);
}
