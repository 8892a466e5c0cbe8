// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads an ELF file, of which nothing is believed: each offset is checked
 * against the size of the file.
 */
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf.h"
#include "tool.h"

#define MAX_FILE	(512u << 20)
/* More than any file has; ends loops in broken ones. */
#define MAX_ENTRIES	65536

/* What is needed of a program header or of an entry of the dynamic section. */
struct segment {
	uint32_t type;
	uint64_t offset, vaddr, size;
};

struct dynamic {
	uint64_t strtab, strsz, verneed, verneednum, verdef, verdefnum;
};

/* Returns @size bytes at @offset, or NULL if the file is shorter. */
static const void *at(const struct elf_file *elf, uint64_t offset, uint64_t size)
{
	if (offset > elf->size || size > elf->size - offset)
		return NULL;
	return elf->data + offset;
}

static bool get_segment(const struct elf_file *elf, size_t i, struct segment *seg)
{
	Elf64_Phdr p64;
	Elf32_Phdr p32;
	Elf64_Ehdr e64;
	Elf32_Ehdr e32;
	const void *p;

	if (elf->class == 64) {
		memcpy(&e64, elf->data, sizeof(e64));
		if (i >= e64.e_phnum || e64.e_phentsize != sizeof(p64))
			return false;
		p = at(elf, e64.e_phoff + i * sizeof(p64), sizeof(p64));
		if (!p || e64.e_phoff > elf->size)
			return false;
		memcpy(&p64, p, sizeof(p64));
		*seg = (struct segment){ p64.p_type, p64.p_offset, p64.p_vaddr,
					 p64.p_filesz };
		return true;
	}
	memcpy(&e32, elf->data, sizeof(e32));
	if (i >= e32.e_phnum || e32.e_phentsize != sizeof(p32))
		return false;
	p = at(elf, e32.e_phoff + i * sizeof(p32), sizeof(p32));
	if (!p)
		return false;
	memcpy(&p32, p, sizeof(p32));
	*seg = (struct segment){ p32.p_type, p32.p_offset, p32.p_vaddr,
				 p32.p_filesz };
	return true;
}

static bool find_segment(const struct elf_file *elf, uint32_t type,
			 struct segment *seg)
{
	size_t i;

	for (i = 0; get_segment(elf, i, seg); i++)
		if (seg->type == type)
			return true;
	return false;
}

/* Returns the place in the file of what the loader puts at @addr, or 0. */
static uint64_t offset_of(const struct elf_file *elf, uint64_t addr)
{
	struct segment seg;
	size_t i;

	for (i = 0; get_segment(elf, i, &seg); i++)
		if (seg.type == PT_LOAD && addr >= seg.vaddr &&
		    addr - seg.vaddr < seg.size)
			return seg.offset + (addr - seg.vaddr);
	return 0;
}

/* Returns a string of the file, or "" if it has no end. */
static const char *string_at(const struct elf_file *elf, uint64_t offset)
{
	const char *text = at(elf, offset, 1);

	if (!text || !memchr(text, 0, elf->size - offset))
		return "";
	return text;
}

static const char *dyn_string(const struct elf_file *elf,
			      const struct dynamic *dyn, uint64_t index)
{
	return index < dyn->strsz ? string_at(elf, dyn->strtab + index) : "";
}

/* Returns false at the end of the dynamic section. */
static bool get_dyn(const struct elf_file *elf, const struct segment *seg,
		    size_t i, uint64_t *tag, uint64_t *value)
{
	size_t size = elf->class == 64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	const void *p;
	Elf64_Dyn d64;
	Elf32_Dyn d32;

	if (i >= seg->size / size)
		return false;
	p = at(elf, seg->offset + i * size, size);
	if (!p || seg->offset > elf->size)
		return false;
	if (elf->class == 64) {
		memcpy(&d64, p, sizeof(d64));
		*tag = d64.d_tag;
		*value = d64.d_un.d_val;
	} else {
		memcpy(&d32, p, sizeof(d32));
		*tag = d32.d_tag;
		*value = d32.d_un.d_val;
	}
	return *tag != DT_NULL;
}

static void add_version(struct elf_file *elf, const char *file, const char *name)
{
	elf->versions = tool_grow(elf->versions, elf->num_versions,
				  sizeof(*elf->versions));
	elf->versions[elf->num_versions].file = file;
	elf->versions[elf->num_versions++].name = name;
}

/* Both classes have the same entries. */
static void read_needed_versions(struct elf_file *elf, const struct dynamic *dyn)
{
	uint64_t offset = offset_of(elf, dyn->verneed), aux, i, k;
	Elf64_Vernaux vna;
	Elf64_Verneed vn;
	const void *p;

	if (!offset)
		return;
	for (i = 0; i < dyn->verneednum && i < MAX_ENTRIES; i++) {
		p = at(elf, offset, sizeof(vn));
		if (!p)
			return;
		memcpy(&vn, p, sizeof(vn));
		aux = offset + vn.vn_aux;
		for (k = 0; k < vn.vn_cnt; k++) {
			p = at(elf, aux, sizeof(vna));
			if (!p || elf->num_versions >= MAX_ENTRIES)
				return;
			memcpy(&vna, p, sizeof(vna));
			add_version(elf, dyn_string(elf, dyn, vn.vn_file),
				    dyn_string(elf, dyn, vna.vna_name));
			aux += vna.vna_next;
		}
		if (!vn.vn_next)
			return;
		offset += vn.vn_next;
	}
}

static void read_own_versions(struct elf_file *elf, const struct dynamic *dyn)
{
	uint64_t offset = offset_of(elf, dyn->verdef), i;
	Elf64_Verdaux vda;
	Elf64_Verdef vd;
	const void *p;

	if (!offset)
		return;
	for (i = 0; i < dyn->verdefnum && i < MAX_ENTRIES; i++) {
		p = at(elf, offset, sizeof(vd));
		if (!p)
			return;
		memcpy(&vd, p, sizeof(vd));
		p = at(elf, offset + vd.vd_aux, sizeof(vda));
		if (!p)
			return;
		memcpy(&vda, p, sizeof(vda));
		add_version(elf, NULL, dyn_string(elf, dyn, vda.vda_name));
		if (!vd.vd_next)
			return;
		offset += vd.vd_next;
	}
}

static void read_tables(struct elf_file *elf, const struct segment *seg,
			struct dynamic *dyn)
{
	uint64_t tag, value;
	size_t i;

	for (i = 0; get_dyn(elf, seg, i, &tag, &value); i++) {
		switch (tag) {
		case DT_STRTAB:
			dyn->strtab = offset_of(elf, value);
			break;
		case DT_STRSZ:
			dyn->strsz = value;
			break;
		case DT_VERNEED:
			dyn->verneed = value;
			break;
		case DT_VERNEEDNUM:
			dyn->verneednum = value;
			break;
		case DT_VERDEF:
			dyn->verdef = value;
			break;
		case DT_VERDEFNUM:
			dyn->verdefnum = value;
			break;
		}
	}
}

static void read_names(struct elf_file *elf, const struct segment *seg,
		       const struct dynamic *dyn)
{
	uint64_t tag, value;
	const char *text;
	size_t i;

	for (i = 0; get_dyn(elf, seg, i, &tag, &value); i++) {
		text = dyn_string(elf, dyn, value);
		switch (tag) {
		case DT_SONAME:
			elf->soname = text;
			break;
		case DT_RPATH:
			elf->rpath = text;
			break;
		case DT_RUNPATH:
			elf->runpath = text;
			break;
		case DT_NEEDED:
			if (elf->num_needed >= MAX_ENTRIES)
				break;
			elf->needed = tool_grow(elf->needed, elf->num_needed,
						sizeof(*elf->needed));
			elf->needed[elf->num_needed++] = text;
			break;
		}
	}
	if (elf->runpath)
		elf->rpath = NULL;
}

static bool read_ident(struct elf_file *elf)
{
	const unsigned char *ident = (const unsigned char *)elf->data;
	uint16_t type_machine[2];
	int order = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;

	if (elf->size < sizeof(Elf64_Ehdr) || memcmp(ident, ELFMAG, SELFMAG) ||
	    ident[EI_DATA] != order)
		return false;
	if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64)
		return false;
	elf->class = ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	memcpy(type_machine, elf->data + EI_NIDENT, sizeof(type_machine));
	elf->machine = type_machine[1];
	return type_machine[0] == ET_EXEC || type_machine[0] == ET_DYN;
}

/*
 * Reads a file, which elf_free() releases.  Returns 0, or a negative errno:
 * ENOEXEC for what is no program or library of this byte order.
 */
int elf_read(struct elf_file *elf, const char *path)
{
	struct dynamic dyn = {};
	struct segment seg;

	memset(elf, 0, sizeof(*elf));
	elf->data = file_read(path, MAX_FILE, &elf->size);
	if (!elf->data)
		return -errno;
	elf->path = text_printf("%s", path);
	if (!read_ident(elf)) {
		elf_free(elf);
		return -ENOEXEC;
	}
	if (find_segment(elf, PT_INTERP, &seg))
		elf->interp = string_at(elf, seg.offset);
	if (!find_segment(elf, PT_DYNAMIC, &seg))
		return 0;
	read_tables(elf, &seg, &dyn);
	read_names(elf, &seg, &dyn);
	read_needed_versions(elf, &dyn);
	read_own_versions(elf, &dyn);
	return 0;
}

void elf_free(struct elf_file *elf)
{
	free(elf->path);
	free(elf->data);
	free(elf->needed);
	free(elf->versions);
	memset(elf, 0, sizeof(*elf));
}

/* Does the file have this text anywhere? */
bool elf_contains(const struct elf_file *elf, const char *text)
{
	return memmem(elf->data, elf->size, text, strlen(text));
}
