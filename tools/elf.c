// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads an ELF file, of which nothing is believed: only the parts that are
 * needed are read, and no more than a file that is not made for it has.
 */
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf.h"
#include "tool.h"

#define MAX_SEGMENTS	64
#define MAX_ENTRIES	512		/* of the dynamic section */
#define MAX_NEEDED	256
#define MAX_VERSIONS	512
#define MAX_NAMES	65536		/* bytes */
#define MAX_STRING	16384
#define MAX_SEARCH	(256u << 20)

/* What is needed of a program header. */
struct segment {
	uint32_t type;
	uint64_t offset, vaddr, size;
};

/**
 * struct reader - a file that is being read
 * @elf: what becomes known of it
 * @fd: the file
 * @used: bytes of the names
 * @segments: its program headers
 * @num: their number
 * @dyn: its dynamic section
 * @num_dyn: entries in it
 * @strtab: place of the strings in the file, or 0
 * @strsz: their size
 */
struct reader {
	struct elf_file *elf;
	int fd;
	size_t used;
	struct segment segments[MAX_SEGMENTS];
	size_t num;
	struct {
		uint64_t tag, value;
	} dyn[MAX_ENTRIES];
	size_t num_dyn;
	uint64_t strtab, strsz;
};

/* Reads @size bytes at @offset.  Returns false if the file is shorter. */
static bool get(const struct reader *r, uint64_t offset, void *buf, size_t size)
{
	return offset <= LONG_MAX && pread(r->fd, buf, size, offset) == (ssize_t)size;
}

static bool read_segments(struct reader *r, uint64_t offset, size_t num, size_t size)
{
	bool is64 = r->elf->class == 64;
	Elf64_Phdr p64;
	Elf32_Phdr p32;
	size_t i;

	if (size != (is64 ? sizeof(p64) : sizeof(p32)))
		return false;
	for (i = 0; i < num && i < MAX_SEGMENTS; i++) {
		if (!get(r, offset + i * size, is64 ? (void *)&p64 : &p32, size))
			break;
		r->segments[i] = is64 ?
			(struct segment){ p64.p_type, p64.p_offset, p64.p_vaddr,
					  p64.p_filesz } :
			(struct segment){ p32.p_type, p32.p_offset, p32.p_vaddr,
					  p32.p_filesz };
	}
	r->num = i;
	r->elf->capped |= num > MAX_SEGMENTS;
	return true;
}

static bool read_head(struct reader *r)
{
	int order = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
	/* They begin with the same members. */
	union {
		Elf64_Ehdr e64;
		Elf32_Ehdr e32;
	} h;
	const unsigned char *ident = h.e64.e_ident;

	if (!get(r, 0, &h, sizeof(h)) || memcmp(ident, ELFMAG, SELFMAG) ||
	    ident[EI_DATA] != order ||
	    (h.e64.e_type != ET_EXEC && h.e64.e_type != ET_DYN))
		return false;
	r->elf->machine = h.e64.e_machine;
	switch (ident[EI_CLASS]) {
	case ELFCLASS64:
		r->elf->class = 64;
		return read_segments(r, h.e64.e_phoff, h.e64.e_phnum,
				     h.e64.e_phentsize);
	case ELFCLASS32:
		r->elf->class = 32;
		return read_segments(r, h.e32.e_phoff, h.e32.e_phnum,
				     h.e32.e_phentsize);
	}
	return false;
}

static const struct segment *find_segment(const struct reader *r, uint32_t type)
{
	size_t i;

	for (i = 0; i < r->num; i++)
		if (r->segments[i].type == type)
			return &r->segments[i];
	return NULL;
}

/* Returns the place in the file of what the loader puts at @addr, or 0. */
static uint64_t offset_of(const struct reader *r, uint64_t addr)
{
	const struct segment *seg;

	for (seg = r->segments; seg < r->segments + r->num; seg++)
		if (seg->type == PT_LOAD && addr >= seg->vaddr &&
		    addr - seg->vaddr < seg->size)
			return seg->offset + (addr - seg->vaddr);
	return 0;
}

/* Keeps a string of the file.  Returns NULL if it is not there or too long. */
static const char *string_at(struct reader *r, uint64_t offset)
{
	char *text = r->elf->names + r->used;
	size_t room = MAX_NAMES - r->used, len;
	ssize_t n;

	if (room > MAX_STRING)
		room = MAX_STRING;
	n = offset > LONG_MAX ? -1 : pread(r->fd, text, room, offset);
	len = n > 0 ? strnlen(text, n) : 0;
	if (n > 0 && len < (size_t)n) {
		r->used += len + 1;
		return text;
	}
	r->elf->capped |= (size_t)n == room;
	return NULL;
}

static const char *dyn_string(struct reader *r, uint64_t index)
{
	return r->strtab && index < r->strsz ? string_at(r, r->strtab + index) : NULL;
}

static void read_dynamic(struct reader *r, const struct segment *seg)
{
	bool is64 = r->elf->class == 64;
	size_t size = is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	Elf64_Dyn d64;
	Elf32_Dyn d32;
	uint64_t i;

	for (i = 0; i < seg->size / size; i++) {
		if (!get(r, seg->offset + i * size, is64 ? (void *)&d64 : &d32, size))
			return;
		if ((is64 ? d64.d_tag : d32.d_tag) == DT_NULL)
			return;
		if (i == MAX_ENTRIES) {
			r->elf->capped = true;
			return;
		}
		r->dyn[i].tag = is64 ? (uint64_t)d64.d_tag : (uint32_t)d32.d_tag;
		r->dyn[i].value = is64 ? d64.d_un.d_val : d32.d_un.d_val;
		r->num_dyn = i + 1;
	}
}

/* Returns the value of the last entry with this tag, or 0. */
static uint64_t dyn_value(const struct reader *r, uint64_t tag)
{
	size_t i;

	for (i = r->num_dyn; i; i--)
		if (r->dyn[i - 1].tag == tag)
			return r->dyn[i - 1].value;
	return 0;
}

static void add_needed(struct elf_file *elf, const char *name)
{
	if (!name)
		return;
	if (elf->num_needed == MAX_NEEDED) {
		elf->capped = true;
		return;
	}
	elf->needed = tool_grow(elf->needed, elf->num_needed, sizeof(*elf->needed));
	elf->needed[elf->num_needed++] = name;
}

static void read_names(struct reader *r)
{
	struct elf_file *elf = r->elf;
	size_t i;

	elf->soname = dyn_string(r, dyn_value(r, DT_SONAME));
	for (i = 0; i < r->num_dyn; i++) {
		switch (r->dyn[i].tag) {
		case DT_RPATH:
			elf->rpath = dyn_string(r, r->dyn[i].value);
			break;
		case DT_RUNPATH:
			elf->runpath = dyn_string(r, r->dyn[i].value);
			break;
		case DT_NEEDED:
			add_needed(elf, dyn_string(r, r->dyn[i].value));
			break;
		}
	}
	if (elf->runpath)
		elf->rpath = NULL;
}

/* Returns false if no more versions are wanted. */
static bool add_version(struct elf_file *elf, const char *file, const char *name)
{
	if (!name)
		return false;
	if (elf->num_versions == MAX_VERSIONS) {
		elf->capped = true;
		return false;
	}
	elf->versions = tool_grow(elf->versions, elf->num_versions,
				  sizeof(*elf->versions));
	elf->versions[elf->num_versions].file = file;
	elf->versions[elf->num_versions++].name = name;
	return true;
}

/* Both classes have the same entries. */
static void read_needed_versions(struct reader *r)
{
	uint64_t offset = offset_of(r, dyn_value(r, DT_VERNEED)), aux, i, k;
	uint64_t num = dyn_value(r, DT_VERNEEDNUM);
	const char *file;
	Elf64_Vernaux vna;
	Elf64_Verneed vn;

	for (i = 0; offset && i < num && i < MAX_VERSIONS; i++) {
		if (!get(r, offset, &vn, sizeof(vn)))
			return;
		file = dyn_string(r, vn.vn_file);
		aux = offset + vn.vn_aux;
		for (k = 0; file && k < vn.vn_cnt; k++) {
			if (!get(r, aux, &vna, sizeof(vna)) ||
			    !add_version(r->elf, file, dyn_string(r, vna.vna_name)))
				return;
			aux += vna.vna_next;
		}
		if (!vn.vn_next)
			return;
		offset += vn.vn_next;
	}
}

static void read_own_versions(struct reader *r)
{
	uint64_t offset = offset_of(r, dyn_value(r, DT_VERDEF)), i;
	uint64_t num = dyn_value(r, DT_VERDEFNUM);
	Elf64_Verdaux vda;
	Elf64_Verdef vd;

	for (i = 0; offset && i < num; i++) {
		if (!get(r, offset, &vd, sizeof(vd)) ||
		    !get(r, offset + vd.vd_aux, &vda, sizeof(vda)) ||
		    !add_version(r->elf, NULL, dyn_string(r, vda.vda_name)) ||
		    !vd.vd_next)
			return;
		offset += vd.vd_next;
	}
}

/*
 * Reads a file, which elf_free() releases.  Returns 0, or a negative errno:
 * ENOEXEC for what is no program or library of this byte order.
 */
int elf_read(struct elf_file *elf, const char *path)
{
	struct reader r = { .elf = elf, .fd = file_open(path) };
	const struct segment *seg;

	if (r.fd < 0)
		return r.fd;
	*elf = (struct elf_file){};
	if (!read_head(&r)) {
		close(r.fd);
		return -ENOEXEC;
	}
	elf->path = text_printf("%s", path);
	elf->names = tool_alloc(MAX_NAMES, 1);
	seg = find_segment(&r, PT_INTERP);
	if (seg)
		elf->interp = string_at(&r, seg->offset);
	seg = find_segment(&r, PT_DYNAMIC);
	if (seg) {
		read_dynamic(&r, seg);
		r.strtab = offset_of(&r, dyn_value(&r, DT_STRTAB));
		r.strsz = dyn_value(&r, DT_STRSZ);
		read_names(&r);
		read_needed_versions(&r);
		read_own_versions(&r);
	}
	close(r.fd);
	return 0;
}

void elf_free(struct elf_file *elf)
{
	free(elf->path);
	free(elf->names);
	free(elf->needed);
	free(elf->versions);
	*elf = (struct elf_file){};
}

/* Does the file have this text anywhere? */
bool elf_contains(const struct elf_file *elf, const char *text)
{
	static char buf[65536];
	size_t len = strlen(text), have = 0, total = 0;
	int fd = file_open(elf->path);
	bool found = false;
	ssize_t n;

	while (fd >= 0 && !found && total < MAX_SEARCH) {
		n = read(fd, buf + have, sizeof(buf) - have);
		if (n <= 0)
			break;
		total += n;
		have += n;
		found = memmem(buf, have, text, len);
		/* The text may go on in the next part. */
		if (have >= len) {
			memmove(buf, buf + have - (len - 1), len - 1);
			have = len - 1;
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}
