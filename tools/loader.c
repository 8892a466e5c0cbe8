// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Finds the libraries of a program as ld.so(8) says, without running anything. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"
#include "tool.h"

#define CACHE		"/etc/ld.so.cache"
#define CACHE_MAGIC	"glibc-ld.so.cache1.1"
#define MAX_CACHE	(64u << 20)
/* More than any program has; ends the work on broken ones. */
#define MAX_OBJECTS	512
#define MAX_FOLDERS	512		/* in one list */
#define MAX_TRIED	100000

/* The file of ldconfig(8): this, the entries, and their strings. */
struct cache_head {
	char magic[20];
	uint32_t num;
	uint32_t len_strings;
	uint32_t unused[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t name;		/* offsets from the head */
	uint32_t path;
	uint32_t os_version;
	uint64_t hwcap;
};

/* Older headers lack it. */
#ifndef EM_LOONGARCH
#define EM_LOONGARCH	258
#endif

static const struct {
	int machine, class;
	const char *lib;
} debian_libs[] = {
	{ EM_X86_64, 64, "lib/x86_64-linux-gnu" },
	{ EM_X86_64, 32, "libx32" },
	{ EM_386, 32, "lib/i386-linux-gnu" },
	{ EM_AARCH64, 64, "lib/aarch64-linux-gnu" },
	{ EM_ARM, 32, "lib/arm-linux-gnueabihf" },
	{ EM_PPC64, 64, "lib/powerpc64le-linux-gnu" },
	{ EM_RISCV, 64, "lib/riscv64-linux-gnu" },
	{ EM_S390, 64, "lib/s390x-linux-gnu" },
	{ EM_LOONGARCH, 64, "lib/loongarch64-linux-gnu" },
};

/* Returns the folder of libraries, which $LIB stands for: Debian's or others'. */
static const char *lib_folder(const struct elf_file *elf)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(debian_libs); i++)
		if (debian_libs[i].machine == elf->machine &&
		    debian_libs[i].class == elf->class &&
		    file_exists("/usr/%s", debian_libs[i].lib))
			return debian_libs[i].lib;
	return elf->class == 64 ? "lib64" : "lib";
}

/* Replaces a token of a path, with and without braces.  Frees @path. */
static char *replace(char *path, const char *token, const char *value)
{
	char *found = strstr(path, token), *after, *result;

	if (!found)
		return path;
	after = found + strlen(token);
	result = text_printf("%.*s%s%s", (int)(found - path), path, value, after);
	free(path);
	return result;
}

/* Expands the tokens of DT_RPATH and DT_RUNPATH in one folder. */
static char *expand(const char *folder, size_t len, const struct elf_file *elf)
{
	const char *slash = strrchr(elf->path, '/');
	char *origin = slash ?
		text_printf("%.*s", (int)(slash - elf->path), elf->path) :
		text_printf(".");
	char *path = text_printf("%.*s", (int)len, folder);

	path = replace(path, "${ORIGIN}", origin);
	path = replace(path, "$ORIGIN", origin);
	path = replace(path, "${LIB}", lib_folder(elf));
	path = replace(path, "$LIB", lib_folder(elf));
	free(origin);
	return path;
}

/* Reads the library if it is there and for the same kind of processor. */
static bool try_path(struct loader *loader, struct elf_file *elf,
		     const char *path)
{
	const struct elf_file *program = &loader->objects[0].elf;

	if (loader->tried == MAX_TRIED) {
		loader->capped = true;
		return false;
	}
	loader->tried++;
	if (elf_read(elf, path))
		return false;
	if (elf->class == program->class && elf->machine == program->machine)
		return true;
	elf_free(elf);
	return false;
}

/* Looks in a list of folders, whose tokens are those of @owner. */
static bool try_list(struct loader *loader, struct elf_file *elf,
		     const char *list, const char *separators,
		     const struct elf_file *owner, const char *name)
{
	bool found = false;
	size_t len, n = 0;

	for (; list && !found; list = list[len] ? list + len + 1 : NULL) {
		char *folder, *path;

		if (n++ == MAX_FOLDERS || loader->capped) {
			loader->capped = true;
			return false;
		}

		len = strcspn(list, separators);
		folder = owner ? expand(list, len, owner) :
			 text_printf("%.*s", (int)len, list);
		path = text_printf("%s/%s", folder[0] ? folder : ".", name);
		found = try_path(loader, elf, path);
		free(path);
		free(folder);
	}
	return found;
}

static bool try_rpaths(struct loader *loader, struct elf_file *elf,
		       size_t asker, const char *name)
{
	if (loader->objects[asker].elf.runpath)
		return false;
	for (;; asker = loader->objects[asker].parent) {
		const struct elf_file *owner = &loader->objects[asker].elf;

		if (try_list(loader, elf, owner->rpath, ":", owner, name))
			return true;
		if (!asker)
			return false;
	}
}

static const char *cache_string(const char *head, size_t size, uint32_t offset)
{
	if (offset >= size || !memchr(head + offset, 0, size - offset))
		return "";
	return head + offset;
}

static bool try_cache(struct loader *loader, struct elf_file *elf,
		      const char *name)
{
	const char *head = loader->cache ?
		memmem(loader->cache, loader->cache_size, CACHE_MAGIC,
		       strlen(CACHE_MAGIC)) : NULL;
	struct cache_entry entry;
	struct cache_head h;
	size_t size;
	uint32_t i;

	if (!head)
		return false;
	size = loader->cache_size - (size_t)(head - loader->cache);
	if (size < sizeof(h))
		return false;
	memcpy(&h, head, sizeof(h));
	for (i = 0; i < h.num; i++) {
		if ((size - sizeof(h)) / sizeof(entry) <= i)
			return false;
		memcpy(&entry, head + sizeof(h) + i * sizeof(entry), sizeof(entry));
		if (!strcmp(cache_string(head, size, entry.name), name) &&
		    try_path(loader, elf, cache_string(head, size, entry.path)))
			return true;
	}
	return false;
}

static bool try_system(struct loader *loader, struct elf_file *elf,
		       const char *name)
{
	const char *lib = lib_folder(&loader->objects[0].elf);
	char *folders;
	bool found;

	if (try_cache(loader, elf, name))
		return true;
	folders = text_printf("/%s:/usr/%s:/lib64:/usr/lib64:/lib:/usr/lib", lib, lib);
	found = try_list(loader, elf, folders, ":", NULL, name);
	free(folders);
	return found;
}

static bool find(struct loader *loader, struct loader_object *obj)
{
	const struct elf_file *asker = &loader->objects[obj->parent].elf;
	const char *env = loader->secure ? NULL : getenv("LD_LIBRARY_PATH");
	const char *first = loader->secure ? NULL : loader->first;
	struct elf_file *elf = &obj->elf;

	obj->how = FOUND_BY_PATH;
	if (strchr(obj->name, '/'))
		return try_path(loader, elf, obj->name);
	obj->how = FOUND_RPATH;
	if (try_rpaths(loader, elf, obj->parent, obj->name))
		return true;
	obj->how = FOUND_ENV;
	if (try_list(loader, elf, first, "", NULL, obj->name) ||
	    try_list(loader, elf, env && *env ? env : NULL, ":;", NULL, obj->name))
		return true;
	obj->how = FOUND_RUNPATH;
	if (try_list(loader, elf, asker->runpath, ":", asker, obj->name))
		return true;
	obj->how = FOUND_SYSTEM;
	return try_system(loader, elf, obj->name);
}

static bool is_known(const struct loader *loader, const char *name)
{
	size_t i;

	for (i = 0; i < loader->num; i++)
		if (!strcmp(loader->objects[i].name, name) ||
		    (loader->objects[i].elf.soname &&
		     !strcmp(loader->objects[i].elf.soname, name)))
			return true;
	for (i = 0; i < loader->num_missing; i++)
		if (!strcmp(loader->missing[i], name))
			return true;
	return false;
}

static void need(struct loader *loader, size_t parent, const char *name)
{
	struct loader_object obj = { .name = name, .parent = parent };

	if (loader->capped || is_known(loader, name))
		return;
	if (loader->num + loader->num_missing == MAX_OBJECTS) {
		loader->capped = true;
		return;
	}
	if (!find(loader, &obj)) {
		if (loader->capped)
			return;
		loader->missing = tool_grow(loader->missing, loader->num_missing,
					    sizeof(*loader->missing));
		loader->missing[loader->num_missing++] = name;
		return;
	}
	loader->objects = tool_grow(loader->objects, loader->num,
				    sizeof(*loader->objects));
	loader->objects[loader->num++] = obj;
}

/* Finds all libraries; takes the program over.  loader_free() releases all. */
void loader_load(struct loader *loader, struct elf_file *program)
{
	size_t i, k;

	loader->cache = file_read(CACHE, MAX_CACHE, &loader->cache_size);
	loader->objects = tool_grow(NULL, 0, sizeof(*loader->objects));
	loader->objects[0].elf = *program;
	loader->objects[0].name = "";
	loader->num = 1;
	/* What each needs, before what that needs. */
	for (i = 0; i < loader->num; i++)
		for (k = 0; k < loader->objects[i].elf.num_needed; k++)
			need(loader, i, loader->objects[i].elf.needed[k]);
	for (i = 0; i < loader->num; i++)
		loader->capped |= loader->objects[i].elf.capped;
}

void loader_free(struct loader *loader)
{
	size_t i;

	for (i = 0; i < loader->num; i++)
		elf_free(&loader->objects[i].elf);
	free(loader->objects);
	free(loader->missing);
	free(loader->cache);
}
