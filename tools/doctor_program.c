// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma-post doctor --program: which libraries would rdma-post-run give it?  The
 * program is not run: its file says what the loader will do.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "doctor.h"
#include "elf.h"
#include "loader.h"

static const char *const rdma_libraries[] = { "librdmacm.so.1", "libibverbs.so.1" };

static void problem(struct doctor *doc, const char *check, char *what, char *why,
		    char *advice)
{
	doctor_report(doc, (struct finding){
		.check = check, .status = DOCTOR_PROBLEM,
		.object = text_printf("%s", doc->program),
		.what = what, .why = why, .advice = advice,
	});
}

/*
 * Finds a program as a shell does: an empty folder is the current one, and
 * folders are no programs.  Returns its path, to be freed, or NULL.
 */
static char *find_program(const char *name)
{
	const char *env = getenv("PATH");
	char *copy, *dir, *rest, *path = NULL;
	struct stat st;

	if (strchr(name, '/'))
		return file_exists("%s", name) ? text_printf("%s", name) : NULL;
	copy = rest = text_printf("%s", env ? env : "/usr/bin:/bin");
	while (!path && (dir = strsep(&rest, ":"))) {
		path = text_printf("%s/%s", *dir ? dir : ".", name);
		if (access(path, X_OK) || stat(path, &st) || !S_ISREG(st.st_mode)) {
			free(path);
			path = NULL;
		}
	}
	free(copy);
	return path;
}

/* Returns why the loader does not trust the environment, or NULL if it does. */
static const char *gains_privileges(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) || statvfs(path, &fs) || fs.f_flag & ST_NOSUID)
		return NULL;
	if (st.st_mode & S_ISUID && st.st_uid != getuid())
		return "set-user-ID";
	if (st.st_mode & S_ISGID && st.st_gid != getgid())
		return "set-group-ID";
	if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		return "a program with file capabilities";
	return NULL;
}

static void report_no_rdma(struct doctor *doc)
{
	doctor_report(doc, (struct finding){
		.check = "program.no_rdma",
		.status = DOCTOR_NOTE,
		.object = text_printf("%s", doc->program),
		.what = text_printf("neither it nor its libraries need librdmacm or libibverbs; a plugin may"),
		.advice = text_printf("doctor --program PLUGIN"),
	});
}

static void report_large(struct doctor *doc)
{
	doctor_report(doc, (struct finding){
		.check = "program.large",
		.status = DOCTOR_NOTE,
		.object = text_printf("%s", doc->program),
		.what = text_printf("it or a library has more names or folders, or longer ones, than are looked at"),
		.why = text_printf("it is broken, or very large"),
		.advice = text_printf("do not trust the rest; see what LD_DEBUG=libs says, if you trust the program"),
	});
}

/* Says so if the loader is not that of glibc. */
static void check_interp(struct doctor *doc, const struct elf_file *elf)
{
	static const char *const ours[] = { "ld-linux", "ld64.so", "ld.so" };
	const char *slash = elf->interp ? strrchr(elf->interp, '/') : NULL;
	size_t i;

	if (!slash)
		return;
	for (i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strncmp(slash + 1, ours[i], strlen(ours[i])))
			return;
	doctor_report(doc, (struct finding){
		.check = "program.loader",
		.status = DOCTOR_NOTE,
		.object = text_printf("%s", doc->program),
		.what = text_printf("its loader is %s", elf->interp),
		.why = text_printf("it may follow other rules than that of glibc, which are used here"),
		.advice = text_printf("build librdma_post with the compiler of the program"),
	});
}

static void check_static(struct doctor *doc, const struct elf_file *elf)
{
	if (elf_contains(elf, RPOST_DEVICE_PATH)) {
		doctor_report(doc, (struct finding){
			.check = "program.library",
			.object = text_printf("%s", doc->program),
			.what = text_printf("static, with librdma_post linked in"),
		});
		return;
	}
	if (!elf_contains(elf, "infiniband")) {
		report_no_rdma(doc);
		return;
	}
	problem(doc, "program.static",
		text_printf("it is linked statically: there is no library to replace"),
		NULL,
		text_printf("link it with librdma_post.a instead (pkg-config --static --libs rdma_post)"));
}

/* Does librdma_post have this version of symbols? */
static bool has_version(const struct elf_file *ours, const char *name)
{
	size_t i;

	for (i = 0; i < ours->num_versions; i++)
		if (!ours->versions[i].file &&
		    !strcmp(ours->versions[i].name, name))
			return true;
	return false;
}

static bool is_rdma(const char *name)
{
	size_t i;

	if (strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	for (i = 0; i < ARRAY_SIZE(rdma_libraries); i++)
		if (!strcmp(name, rdma_libraries[i]))
			return true;
	return false;
}

/* Reports versions of symbols that the program needs and librdma_post lacks. */
static void check_versions(struct doctor *doc, const struct loader *loader)
{
	char *path = text_printf("%s/%s", doc->libs, rdma_libraries[0]);
	struct elf_file ours;
	size_t i, k;

	if (elf_read(&ours, path)) {
		free(path);
		return;
	}
	for (i = 0; i < loader->num; i++) {
		const struct elf_file *elf = &loader->objects[i].elf;

		for (k = 0; k < elf->num_versions; k++) {
			const struct elf_version *need = &elf->versions[k];

			if (!need->file || !is_rdma(need->file) ||
			    has_version(&ours, need->name))
				continue;
			problem(doc, "program.version",
				text_printf("%s needs %s of %s, which librdma_post does not have",
					    elf->path, need->name, need->file),
				text_printf("it was built with a later rdma-core"),
				text_printf("install a later librdma_post, or build the program with an earlier rdma-core"));
		}
	}
	elf_free(&ours);
	free(path);
}

/* The links in our folder may have become copies. */
static bool is_ours(const struct doctor *doc, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = text_printf("%.*s", slash ? (int)(slash - path) : 0, path);
	char *real = realpath(folder, NULL);
	bool same = doc->libs && real && !strcmp(real, doc->libs);

	free(real);
	free(folder);
	return same || strstr(path, "librdma_post.so");
}

/* Has the last finding named this cause, for the other library? */
static bool is_told(const struct doctor *doc, const char *why)
{
	const struct finding *last = doc->num ? &doc->findings[doc->num - 1] : NULL;

	return last && last->status == DOCTOR_PROBLEM &&
	       !strcmp(last->check, "program.library") && !strcmp(last->why, why);
}

/* Reports where one of the libraries comes from. */
static void report_library(struct doctor *doc, const struct loader *loader,
			   const struct loader_object *obj, const char *privileges)
{
	const struct elf_file *asker = &loader->objects[obj->parent].elf;
	char *why;

	if (is_ours(doc, obj->elf.path)) {
		doctor_report(doc, (struct finding){
			.check = "program.library",
			.object = text_printf("%s", doc->program),
			.what = text_printf("under rdma-post-run it gets %s from %s, which is librdma_post",
					    obj->name, obj->elf.path),
		});
		return;
	}
	why = privileges ?
		text_printf("it is %s: the loader ignores LD_LIBRARY_PATH", privileges) :
		obj->how == FOUND_RPATH ?
		text_printf("the DT_RPATH of %s, or of what loads it, comes before LD_LIBRARY_PATH", asker->path) :
		obj->how == FOUND_BY_PATH ?
		text_printf("%s names the library by its path", asker->path) :
		doc->libs ? text_printf("librdma_post in %s is for another kind of processor", doc->libs) :
		text_printf("librdma_post is not installed");
	if (is_told(doc, why)) {
		free(why);
		return;
	}
	problem(doc, "program.library",
		text_printf("it gets %s from %s, which is not librdma_post",
			    obj->name, obj->elf.path),
		why,
		privileges ?
			text_printf("run it without that (as its owner, or a copy), or link it with -lrdma_post") :
		obj->how == FOUND_RPATH ?
			text_printf("patchelf --remove-rpath, or link it with -lrdma_post") :
		obj->how == FOUND_BY_PATH ?
			text_printf("link it with -lrdma_post") :
			text_printf("install librdma_post for the program's kind of processor (make -C userlib CC='cc -m32')"));
}

/* A program may load the libraries when it runs. */
static void check_dlopen(struct doctor *doc, const struct loader *loader)
{
	const struct elf_file *elf = &loader->objects[0].elf;
	bool by_path = elf_contains(elf, "/libibverbs.so") ||
		       elf_contains(elf, "/librdmacm.so");

	if (by_path)
		problem(doc, "program.dlopen",
			text_printf("it seems to load libibverbs or librdmacm by a path of its own"),
			text_printf("the loader looks in LD_LIBRARY_PATH for names without a path only"),
			text_printf("look for a setting of the program that names the library"));
	else if (elf_contains(elf, "libibverbs.so") || elf_contains(elf, "librdmacm.so"))
		doctor_report(doc, (struct finding){
			.check = "program.dlopen",
			.object = text_printf("%s", doc->program),
			.what = text_printf("it loads the libraries by name when it runs; under rdma-post-run it gets librdma_post"),
		});
	else
		report_no_rdma(doc);
}

static void check_dynamic(struct doctor *doc, struct elf_file *elf,
			  const char *privileges)
{
	struct loader loader = { .first = doc->libs, .secure = privileges };
	bool found = false;
	size_t i;

	check_interp(doc, elf);
	loader_load(&loader, elf);
	if (loader.capped)
		report_large(doc);
	for (i = 0; i < loader.num_missing; i++)
		problem(doc, "program.dependency",
			text_printf("the loader will not find %s", loader.missing[i]),
			NULL,
			text_printf("install the package that has it (apt-file search %s)",
				    loader.missing[i]));
	for (i = 1; i < loader.num; i++) {
		const struct loader_object *obj = &loader.objects[i];

		if (!is_rdma(obj->name) && !strstr(obj->name, "librdma_post.so"))
			continue;
		found = true;
		report_library(doc, &loader, obj, privileges);
	}
	if (!found && !loader.num_missing)
		check_dlopen(doc, &loader);
	if (found && doc->libs)
		check_versions(doc, &loader);
	loader_free(&loader);
}

static void check_file(struct doctor *doc, const char *path)
{
	const char *privileges = gains_privileges(path);
	struct elf_file elf;
	char line[PATH_MAX];
	int err;

	err = elf_read(&elf, path);
	if (err == -ENOEXEC && !file_line(line, sizeof(line), "%s", path) &&
	    !strncmp(line, "#!", 2)) {
		doctor_report(doc, (struct finding){
			.check = "program.script",
			.status = DOCTOR_NOTE,
			.object = text_printf("%s", doc->program),
			.what = text_printf("it is a script, run by%s%s",
					    line[2] == ' ' ? "" : " ", line + 2),
			.advice = text_printf("doctor --program with the program that it runs"),
		});
	} else if (err) {
		problem(doc, "program.file",
			err == -ENOEXEC ?
			text_printf("it is no program or library of this kind of processor") :
			err == -EINVAL ? text_printf("it is no regular file, or empty") :
			text_printf("it cannot be read: %s", strerror(-err)),
			NULL, text_printf("name the program itself"));
	} else if (!elf.num_needed) {
		if (elf.capped)
			report_large(doc);
		check_static(doc, &elf);
		elf_free(&elf);
	} else {
		check_dynamic(doc, &elf, privileges);
	}
}

/**
 * check_program() - which libraries does the program of --program get?
 * @doc: the visit
 */
void check_program(struct doctor *doc)
{
	char *path;

	if (!doc->program)
		return;
	path = find_program(doc->program);
	if (path)
		check_file(doc, path);
	else
		problem(doc, "program.file", text_printf("there is no such program"),
			NULL, text_printf("name it with its path"));
	free(path);
}

/* Returns true if librdma_post is in the folder, which becomes @doc's. */
static bool try_folder(struct doctor *doc, char *folder)
{
	if (!file_exists("%s/%s", folder, rdma_libraries[0])) {
		free(folder);
		return false;
	}
	doc->libs = realpath(folder, NULL);
	free(folder);
	return doc->libs;
}

/**
 * check_library() - is librdma_post where rdma-post-run finds it?
 * @doc: the visit
 */
void check_library(struct doctor *doc)
{
	char self[PATH_MAX] = "";
	ssize_t n;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0 && strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	/* As rdma-post-run does. */
	if (!try_folder(doc, text_printf("%s/../lib/rdma_post", self)) &&
	    !try_folder(doc, text_printf(TOOL_LIBDIR "/rdma_post"))) {
		doctor_report(doc, (struct finding){
			.check = "library.missing",
			.status = DOCTOR_NOTE,
			.object = text_printf("librdma_post"),
			.what = text_printf("it is not in " TOOL_LIBDIR "/rdma_post: rdma-post-run will not work; programs that have it linked in will"),
			.advice = text_printf("install librdma-post1, or make install in the source"),
		});
		return;
	}
	doctor_report(doc, (struct finding){
		.check = "library.installed",
		.object = text_printf("librdma_post"),
		.what = text_printf("rdma-post-run finds it in %s", doc->libs),
	});
}
