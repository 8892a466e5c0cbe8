/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the loader reads in a program or library, read without running it. */
#ifndef TOOL_ELF_H
#define TOOL_ELF_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct elf_file - a program or library; strings point into @names
 * @path: where it was found
 * @names: what of its strings is used
 * @class: 32 or 64
 * @machine: EM_*
 * @interp: the loader, or NULL
 * @soname: its own name, or NULL
 * @rpath: DT_RPATH, unless there is a DT_RUNPATH, or NULL
 * @runpath: DT_RUNPATH, or NULL
 * @needed: libraries
 * @num_needed: their number
 * @versions: versions of symbols that it needs from others, or that it has
 * @num_versions: their number
 * @capped: it has more of these than are read
 */
struct elf_file {
	char *path;
	char *names;
	int class;
	int machine;
	const char *interp;
	const char *soname;
	const char *rpath;
	const char *runpath;
	const char **needed;
	size_t num_needed;
	struct elf_version {
		const char *file;	/* NULL for its own */
		const char *name;
	} *versions;
	size_t num_versions;
	bool capped;
};

int elf_read(struct elf_file *elf, const char *path);
void elf_free(struct elf_file *elf);
bool elf_contains(const struct elf_file *elf, const char *text);

#endif /* TOOL_ELF_H */
