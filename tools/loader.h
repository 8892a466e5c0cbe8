/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the loader of glibc would find the libraries of a program, by ld.so(8). */
#ifndef TOOL_LOADER_H
#define TOOL_LOADER_H

#include "elf.h"

enum loader_how { FOUND_BY_PATH, FOUND_RPATH, FOUND_ENV, FOUND_RUNPATH, FOUND_SYSTEM };

/**
 * struct loader_object - the program or a library
 * @elf: what its file says
 * @name: the name by which it is needed
 * @parent: index of what needed it first
 * @how: where it was found
 */
struct loader_object {
	struct elf_file elf;
	const char *name;
	size_t parent;
	enum loader_how how;
};

/**
 * struct loader - a program with its libraries
 * @first: folder that comes first in LD_LIBRARY_PATH, or NULL
 * @secure: LD_LIBRARY_PATH is ignored
 * @objects: the program and its libraries, in the order of loading
 * @num: their number
 * @missing: names that were not found
 * @num_missing: their number
 * @tried: paths
 * @capped: there is more than was looked at
 * @cache: /etc/ld.so.cache
 * @cache_size: its size
 */
struct loader {
	const char *first;
	bool secure;
	struct loader_object *objects;
	size_t num;
	const char **missing;
	size_t num_missing;
	size_t tried;
	bool capped;
	char *cache;
	size_t cache_size;
};

void loader_load(struct loader *loader, struct elf_file *program);
void loader_free(struct loader *loader);

#endif /* TOOL_LOADER_H */
