/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The open files of /dev/rdma_post, and the processes that hold them. */
#ifndef OPEN_FILES_H
#define OPEN_FILES_H

#include "fdinfo.h"

/**
 * struct holder - a process that has a descriptor of an open file, or of its shares
 * @pid: of the process
 * @uid: its effective user
 * @user: name of this user, or its number
 * @program: name of the program
 * @cgroup: path of its control group
 * @container: the part of this path that tells most, or NULL
 * @num_fds: number of @fds
 * @fds: these descriptors
 */
struct holder {
	pid_t pid;
	uid_t uid;
	char *user;
	char *program;
	char *cgroup;
	char *container;
	size_t num_fds;
	int *fds;
};

/**
 * struct open_file - an open file of /dev/rdma_post
 * @known: @info was read
 * @info: what the kernel tells of it
 * @num_holders: number of @holders, at least 1
 * @holders: processes that have it, by their pid
 */
struct open_file {
	bool known;
	struct fdinfo info;
	size_t num_holders;
	struct holder *holders;
};

/**
 * struct open_files - all open files that this user may see
 * @num: number of @files
 * @files: by pid of the first holder
 * @num_hidden: processes into which this user may not look
 * @num_left_out: descriptors that were not looked at, since their process has many
 * @num_unknown: files of which only the holders are known
 * @last: the highest number of a file
 * @places: a tree that finds files by their numbers
 */
struct open_files {
	size_t num;
	struct open_file *files;
	size_t num_hidden;
	size_t num_left_out;
	size_t num_unknown;
	uint64_t last;
	void *places;
};

int open_files_get(struct open_files *all);
void open_files_free(struct open_files *all);
const struct open_file *open_files_find(const struct open_files *all, uint64_t file);
void open_files_warn(const struct open_files *all);
void open_files_json(const struct open_files *all);
void open_file_json(const struct open_file *file);
bool process_hidden(pid_t pid);
const struct holder *holder_find(const struct open_file *file, pid_t pid);

#endif /* OPEN_FILES_H */
