// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Watches the kernel's log and the module's objects. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define OBJECTS		"/sys/kernel/debug/rdma_post/objects"

/*
 * Complaints of the kernel, as in selftests/vm/guest.sh, that it can make while
 * a program runs.
 */
static const char * const splats[] = {
	"BUG:", "BUG at ", "WARNING:", "Oops", "general protection fault",
	"KASAN:", "UBSAN:", "KFENCE:", "possible circular", "possible recursive",
	"possible irq lock", "inconsistent lock state", "bad unlock balance",
	"held lock freed", "lock held when returning", "suspicious RCU",
	"INFO: suspicious", "sleeping function called",
	"scheduling while atomic", "blocked for more than", "soft lockup",
	"hard LOCKUP", "rcu_preempt detected stalls", "detected stalls",
	"workqueue lockup", "refcount_t:", "list_add corruption",
	"list_del corruption", "ODEBUG:", "unregister_netdevice: waiting",
	"unable to handle", "page allocation failure",
};

/*
 * Complaints that are not about the module.  rxe_xmit_packet() hands a packet
 * on, and then schedules the task of its queue pair, to which the packet held
 * the only reference: if the queue pair is destroyed at that moment, rxe warns,
 * with uverbs as well.
 */
static const char * const known[] = {
	"rxe_task.c", " rxe_sched_task+",
};

static int kmsg = -1;

static bool is_known(const char *text)
{
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strstr(text, known[i]))
			return true;
	}
	return false;
}

int watch_open(void)
{
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg < 0)
		return -errno;
	lseek(kmsg, 0, SEEK_END);
	return 0;
}

/* Returns true if the kernel has complained, with the line. */
bool watch_log(char *line, size_t size)
{
	char record[4096], *text;
	unsigned int i;
	ssize_t n;

	while (kmsg >= 0) {
		n = read(kmsg, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return false;
		record[n] = '\0';
		text = strchr(record, ';');
		text = text ? text + 1 : record;
		for (i = 0; i < sizeof(splats) / sizeof(splats[0]); i++) {
			if (strstr(text, splats[i]) && !is_known(text)) {
				snprintf(line, size, "%s", text);
				line[strcspn(line, "\n")] = '\0';
				return true;
			}
		}
	}
	return false;
}

static bool any_left(char *left, size_t size)
{
	char line[128], name[64];
	FILE *f = fopen(OBJECTS, "r");
	bool any = false;
	long n;

	*left = '\0';
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %ld", name, &n) != 2 || !n)
			continue;
		any = true;
		snprintf(left + strlen(left), size - strlen(left), " %s %ld",
			 name, n);
	}
	fclose(f);
	return any;
}

/* Returns true if objects stay after the program has ended, with a list. */
bool watch_objects(char *left, size_t size)
{
	int i;

	for (i = 0; i < 3000; i++) {
		if (!any_left(left, size))
			return false;
		usleep(i < 100 ? 1000 : 10000);
	}
	return true;
}

/* Print where the threads of a process sleep. */
void watch_stacks(int pid, FILE *to)
{
	char path[320], text[4096];
	struct dirent *entry;
	size_t n;
	FILE *f;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stack", pid,
			 entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		text[n] = '\0';
		fprintf(to, "thread %s:\n%s", entry->d_name, text);
		fclose(f);
	}
	if (dir)
		closedir(dir);
}
