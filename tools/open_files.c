// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Finds the open files of /dev/rdma_post: looks at all descriptors in /proc.  A
 * process may exit at any time; then it just is not there.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <pwd.h>
#include <rdma/rdma_post_abi.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "open_files.h"
#include "tool.h"

static bool denied(int err)
{
	return err == -EACCES || err == -EPERM;
}

/* The kernel's list of misc devices also tells whether the module is loaded. */
static int find_device(dev_t *dev)
{
	int minor = module_minor();
	char line[64];
	struct stat st;

	if (minor >= 0) {
		*dev = makedev(MISC_MAJOR, minor);
		return 0;
	}
	if (!file_line(line, sizeof(line), "/proc/misc"))
		return tool_error("the module " MODULE_NAME " is not loaded; see rdma-post doctor");
	if (stat(RPOST_DEVICE_PATH, &st))
		return tool_error("%s: %m; see rdma-post doctor", RPOST_DEVICE_PATH);
	*dev = st.st_rdev;
	return 0;
}

/* ------------------------------------------------------ processes */

static char *user_name(uid_t uid)
{
	static uid_t last_uid;
	static char *last_name;
	const struct passwd *pw;

	if (!last_name || last_uid != uid) {
		pw = getpwuid(uid);
		free(last_name);
		last_name = pw ? text_printf("%s", pw->pw_name) :
				 text_printf("%u", uid);
		last_uid = uid;
	}
	return text_printf("%s", last_name);
}

static bool effective_uid(pid_t pid, uid_t *uid)
{
	char *path = text_printf("/proc/%d/status", pid), *line;
	char *status = file_read(path, 65536, NULL);
	bool found;

	line = status ? strstr(status, "\nUid:") : NULL;
	found = line && sscanf(line, "\nUid: %*u %u", uid) == 1;
	free(path);
	free(status);
	return found;
}

/*
 * Returns the path in the unified hierarchy, or, if the process is in its root, the
 * longest of the others.
 */
static char *read_cgroup(pid_t pid)
{
	char *name = text_printf("/proc/%d/cgroup", pid), *line, *rest = NULL;
	char *text = file_read(name, 1 << 20, NULL), *path, *best = NULL;

	free(name);
	for (line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (!path)
			continue;
		path++;
		if (!strncmp(line, "0::", 3) && strcmp(path, "/")) {
			best = path;
			break;
		}
		if (!best || strlen(path) > strlen(best))
			best = path;
	}
	best = text_printf("%s", best ? best : "");
	free(text);
	return best;
}

/* Whether engines use this name for a part of each container. */
static bool says_nothing(const char *name)
{
	static const char *const names[] = {
		"container", "init", "init.scope", "payload", "supervisor", "leaf",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Shortens the number of a container as engines do, to 12 digits. */
static void shorten(char *name)
{
	size_t len = strlen(name), digits;
	char *c;

	if (len > 6 && !strcmp(name + len - 6, ".scope"))
		name[len - 6] = '\0';
	for (c = name; *c; c += digits ? digits : 1) {
		digits = strspn(c, "0123456789abcdef");
		if (digits >= 32) {
			memmove(c + 12, c + digits, strlen(c + digits) + 1);
			digits = 12;
		}
	}
}

static char *container_of_cgroup(const char *cgroup)
{
	char *path = text_printf("%s", cgroup), *last, *name = NULL;

	while ((last = strrchr(path, '/'))) {
		if (last[1] && !says_nothing(last + 1)) {
			name = text_printf("%s", last + 1);
			break;
		}
		*last = '\0';
	}
	free(path);
	if (name)
		shorten(name);
	return name;
}

/* Returns false if the process has ended. */
static bool holder_init(struct holder *holder, pid_t pid)
{
	char comm[64];

	memset(holder, 0, sizeof(*holder));
	if (!effective_uid(pid, &holder->uid))
		return false;
	holder->pid = pid;
	holder->user = user_name(holder->uid);
	file_line(comm, sizeof(comm), "/proc/%d/comm", pid);
	holder->program = text_printf("%s", *comm ? comm : "-");
	holder->cgroup = read_cgroup(pid);
	holder->container = container_of_cgroup(holder->cgroup);
	return true;
}

static void holder_free(struct holder *holder)
{
	free(holder->user);
	free(holder->program);
	free(holder->cgroup);
	free(holder->container);
	free(holder->fds);
}

/*
 * Threads of the kernel have no files, nor have processes that have ended.  What
 * hidepid=1 hides may have some.
 */
static bool has_no_files(pid_t pid)
{
	unsigned int flags;
	char line[1024], *end;
	int err;

	err = file_line(line, sizeof(line), "/proc/%d/stat", pid);
	if (err)
		return !denied(err);
	end = strrchr(line, ')');
	return end && sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & 0x00200000;	/* PF_KTHREAD */
}

/* ---------------------------------------------------------- files */

/* A file's place among all, in a tree. */
struct place {
	uint64_t file;
	size_t i;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *pa = a, *pb = b;

	return (pa->file > pb->file) - (pa->file < pb->file);
}

static struct place *find_place(const struct open_files *all, uint64_t file)
{
	const struct place key = { .file = file };
	void *found = tfind(&key, (void *const *)&all->places, compare_places);

	return found ? *(struct place **)found : NULL;
}

/* Takes @info. */
static struct open_file *new_file(struct open_files *all, const struct fdinfo *info)
{
	struct open_file *file;
	struct place *place;

	all->files = tool_grow(all->files, all->num, sizeof(*file));
	file = &all->files[all->num++];
	file->known = info->has_file;
	file->info = *info;
	if (!file->known) {
		all->num_unknown++;
		return file;
	}
	place = tool_alloc(1, sizeof(*place));
	place->file = info->file;
	place->i = all->num - 1;
	if (!tsearch(place, &all->places, compare_places))
		tool_no_memory();
	if (info->file > all->last)
		all->last = info->file;
	return file;
}

/* Of a process that has ended meanwhile, nothing is added.  Takes @info. */
static void add_file(struct open_files *all, struct fdinfo *info, pid_t pid, int fd)
{
	struct open_file *file = info->has_file ?
		(struct open_file *)open_files_find(all, info->file) : NULL;
	struct holder holder, *last;

	/* Processes come one by one. */
	last = file ? &file->holders[file->num_holders - 1] : NULL;
	if ((!last || last->pid != pid) && !holder_init(&holder, pid)) {
		fdinfo_free(info);
		return;
	}
	if (file)
		fdinfo_free(info);
	else
		file = new_file(all, info);
	if (!last || last->pid != pid) {
		file->holders = tool_grow(file->holders, file->num_holders,
					  sizeof(*last));
		last = &file->holders[file->num_holders++];
		*last = holder;
	}
	last->fds = tool_grow(last->fds, last->num_fds, sizeof(int));
	last->fds[last->num_fds++] = fd;
}

/* Whether a descriptor is one of SHARE_DEVICE, which has no inode of its own. */
static bool is_share(const char *path)
{
	static const char share[] = "anon_inode:[rdma_post_share]";
	char link[sizeof(share)];

	return readlink(path, link, sizeof(link)) == sizeof(share) - 1 &&
	       !memcmp(link, share, sizeof(share) - 1);
}

/*
 * Whether a descriptor belongs to a file of the device: 1 or 0, or a negative errno.
 * A file system that does not answer must not hold us up.
 */
static int is_device(const char *path, dev_t dev)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return -errno;
	if (S_ISCHR(st.stx_mode))
		return makedev(st.stx_rdev_major, st.stx_rdev_minor) == dev;
	/* Anonymous inodes have no type. */
	return !(st.stx_mode & S_IFMT) && is_share(path);
}

/*
 * Reads of fdinfo for each process.  Each is work for the kernel, and a process can
 * have a million descriptors.
 */
#define MAX_READS	1024

/* A look at a process. */
struct search {
	struct open_files *all;
	dev_t dev;
	pid_t pid;
	unsigned int reads;
};

static void read_fd(struct search *search, const char *link, const char *path, int fd)
{
	struct fdinfo info;
	int err;

	if (search->reads == MAX_READS) {
		search->all->num_left_out++;
		return;
	}
	search->reads++;
	err = fdinfo_read(&info, path);
	/* Meanwhile it may have been closed, and be another file. */
	if (err == -ENOENT || (!info.has_file && is_device(link, search->dev) != 1))
		fdinfo_free(&info);
	else
		add_file(search->all, &info, search->pid, fd);
}

/* Returns what is_device() does. */
static int look_at_fd(struct search *search, const char *dir, int fd)
{
	char *link = text_printf("%s/fd/%d", dir, fd);
	char *path = text_printf("%s/fdinfo/%d", dir, fd);
	int is = is_device(link, search->dev);

	if (is == 1)
		read_fd(search, link, path, fd);
	free(link);
	free(path);
	return is;
}

/*
 * Returns the number of descriptors that it may look at, or a negative errno.  Who may
 * list descriptors may not always look at them.  If some are refused, it is their file
 * systems that do so: FUSE answers its own user only.
 */
static int look_at_task(struct search *search, const char *dir)
{
	char *path = text_printf("%s/fd", dir);
	const struct dirent *entry;
	int n = 0, refused = 0;
	DIR *fds = opendir(path);

	free(path);
	if (!fds)
		return -errno;
	while ((entry = readdir(fds))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (denied(look_at_fd(search, dir, atoi(entry->d_name))))
			refused++;
		else
			n++;
	}
	closedir(fds);
	return n || !refused ? n : -EACCES;
}

/*
 * The main thread may have ended before the others; then its /proc/PID/fd is empty.
 * Returns what look_at_task() has for one that has files.
 */
static int look_at_threads(struct search *search)
{
	char *path = text_printf("/proc/%d/task", search->pid), *dir;
	const struct dirent *entry;
	DIR *tasks = opendir(path);
	int n = 0;

	free(path);
	if (!tasks)
		return -errno;
	while ((n == 0 || n == -ENOENT) && (entry = readdir(tasks))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    atoi(entry->d_name) == search->pid)
			continue;
		dir = text_printf("/proc/%d/task/%s", search->pid, entry->d_name);
		n = look_at_task(search, dir);
		free(dir);
	}
	closedir(tasks);
	return n;
}

static void look_at_process(struct open_files *all, pid_t pid, dev_t dev)
{
	struct search search = { .all = all, .dev = dev, .pid = pid };
	char *dir = text_printf("/proc/%d", pid);
	int n = look_at_task(&search, dir);

	free(dir);
	if (n == 0 || n == -ENOENT)
		n = look_at_threads(&search);
	if (denied(n) && !has_no_files(pid))
		all->num_hidden++;
}

/**
 * process_hidden() - may this user not look at a process?
 * @pid: the process
 *
 * Return: whether its files are hidden.
 */
bool process_hidden(pid_t pid)
{
	struct open_files none = { };
	bool hidden;

	/* No device has this number; but a share is found. */
	look_at_process(&none, pid, 0);
	hidden = none.num_hidden;
	open_files_free(&none);
	return hidden;
}

/* ------------------------------------------------------- for all */

static int compare_holders(const void *a, const void *b)
{
	const struct holder *ha = a, *hb = b;

	return (ha->pid > hb->pid) - (ha->pid < hb->pid);
}

static int compare_files(const void *a, const void *b)
{
	const struct open_file *fa = a, *fb = b;
	int order = compare_holders(fa->holders, fb->holders);

	return order ? order : (fa->info.file > fb->info.file) -
			       (fa->info.file < fb->info.file);
}

static void sort(struct open_files *all)
{
	size_t i;

	for (i = 0; i < all->num; i++)
		qsort(all->files[i].holders, all->files[i].num_holders,
		      sizeof(struct holder), compare_holders);
	if (all->num)
		qsort(all->files, all->num, sizeof(*all->files), compare_files);
	for (i = 0; i < all->num; i++)
		if (all->files[i].known)
			find_place(all, all->files[i].info.file)->i = i;
}

/**
 * open_files_get() - find all open files
 * @all: gets them; to be freed by open_files_free()
 *
 * Return: 0, or the exit status after a message.
 */
int open_files_get(struct open_files *all)
{
	const struct dirent *entry;
	DIR *proc;
	dev_t dev = 0;

	memset(all, 0, sizeof(*all));
	if (find_device(&dev))
		return TOOL_FAILED;
	proc = opendir("/proc");
	if (!proc)
		return tool_error("reading /proc: %m; it tells who has the node open: mount -t proc proc /proc");
	while ((entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_process(all, atoi(entry->d_name), dev);
	closedir(proc);
	sort(all);
	return 0;
}

/**
 * open_files_free() - free what open_files_get() has allocated
 * @all: it
 */
void open_files_free(struct open_files *all)
{
	size_t i, j;

	for (i = 0; i < all->num; i++) {
		for (j = 0; j < all->files[i].num_holders; j++)
			holder_free(&all->files[i].holders[j]);
		free(all->files[i].holders);
		fdinfo_free(&all->files[i].info);
	}
	free(all->files);
	tdestroy(all->places, free);
	memset(all, 0, sizeof(*all));
}

/**
 * open_files_find() - look for a file
 * @all: the open files
 * @file: its number
 *
 * Return: the file, or NULL.
 */
const struct open_file *open_files_find(const struct open_files *all, uint64_t file)
{
	const struct place *place = find_place(all, file);

	return place ? &all->files[place->i] : NULL;
}

/**
 * open_files_warn() - say what is not shown, and why
 * @all: the open files
 */
void open_files_warn(const struct open_files *all)
{
	if (all->num_hidden)
		tool_error("cannot look into %zu processes; root with CAP_SYS_PTRACE can",
			   all->num_hidden);
	if (all->num_left_out)
		tool_error("left out %zu descriptors of processes that have more than %d",
			   all->num_left_out, MAX_READS);
	if (all->num_unknown)
		tool_error("the kernel does not tell what %zu of the files have: not permitted, or the module is too old",
			   all->num_unknown);
}

/**
 * open_files_json() - print what is not shown, as members of a JSON object
 * @all: the open files
 */
void open_files_json(const struct open_files *all)
{
	json_number("hidden_processes", all->num_hidden);
	json_number("descriptors_left_out", all->num_left_out);
}

/**
 * holder_find() - look for a process among the holders of a file
 * @file: the file
 * @pid: the process
 *
 * Return: the holder, or NULL.
 */
const struct holder *holder_find(const struct open_file *file, pid_t pid)
{
	size_t i;

	for (i = 0; i < file->num_holders; i++)
		if (file->holders[i].pid == pid)
			return &file->holders[i];
	return NULL;
}

/**
 * open_file_json() - print who has a file, as members of a JSON object
 * @file: the file
 */
void open_file_json(const struct open_file *file)
{
	size_t i, j;
	char *name;

	json_optional("file", file->known, file->info.file);
	json_array("holders");
	for (i = 0; i < file->num_holders; i++) {
		const struct holder *holder = &file->holders[i];

		json_object(NULL);
		json_number("pid", holder->pid);
		json_string("program", holder->program);
		json_number("uid", holder->uid);
		json_string("user", holder->user);
		json_string("cgroup", holder->cgroup);
		json_string("container", holder->container);
		json_array("descriptors");
		for (j = 0; j < holder->num_fds; j++)
			json_number(NULL, holder->fds[j]);
		json_end();
		json_end();
	}
	json_end();
	json_array("devices");
	for (i = 0; i < file->info.num_values; i++) {
		if (strcmp(file->info.values[i].key, "device"))
			continue;
		name = text_printf("%s", file->info.values[i].text);
		name[strcspn(name, " ")] = '\0';
		json_string(NULL, name);
		free(name);
	}
	json_end();
}
