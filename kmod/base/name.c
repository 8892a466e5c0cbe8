// SPDX-License-Identifier: GPL-2.0
/*
 * Names of open files, which the RDMA core shows as the owners of their objects
 * ("rdma resource show").
 */
#include <linux/ctype.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "base/base.h"

/*
 * A name, whose last byte is always 0, or its memory in the list of free ones.
 *
 * The RDMA core keeps only a pointer, and cma copies it to the id of a request,
 * which it may free after the listener.  So the memory of a name is used again for
 * other names, and freed as late as it can be: as the module goes.
 */
struct rpost_name {
	struct list_head link;
	char text[RPOST_NAME_SIZE];
};

static DEFINE_SPINLOCK(rpost_names_lock);
static LIST_HEAD(rpost_names);

/*
 * Make a name of the current program and its pid.  Return it, until rpost_name_put(), or
 * NULL without memory.
 */
const char *rpost_name_get(void)
{
	char comm[TASK_COMM_LEN], pid[12];
	struct rpost_name *name;
	char *c;
	int n;

	spin_lock(&rpost_names_lock);
	name = list_first_entry_or_null(&rpost_names, struct rpost_name, link);
	if (name)
		list_del(&name->link);
	spin_unlock(&rpost_names_lock);
	if (!name)
		/* No memory cgroup is charged, since the name outlives the file. */
		name = kzalloc(sizeof(*name), GFP_KERNEL);
	if (!name)
		return NULL;

	/* The name goes to terminals, and a program can call itself anything. */
	get_task_comm(comm, current);
	for (c = comm; *c; c++) {
		if (!isascii(*c) || (!isalnum(*c) && !strchr("-_+:/", *c)))
			*c = '_';
	}
	/* The pid, in the initial namespace, is complete. */
	n = snprintf(pid, sizeof(pid), ".%d", task_tgid_nr(current));
	snprintf(name->text, sizeof(name->text), "%.*s%s",
		 RPOST_NAME_SIZE - 1 - n, comm, pid);
	return name->text;
}

/* text is from rpost_name_get(), or NULL. */
void rpost_name_put(const char *text)
{
	struct rpost_name *name;

	if (!text)
		return;
	name = container_of((void *)text, struct rpost_name, text);
	spin_lock(&rpost_names_lock);
	list_add(&name->link, &rpost_names);
	spin_unlock(&rpost_names_lock);
}

/* Free the memory of all names, as the module goes. */
void rpost_names_free(void)
{
	struct rpost_name *name, *next;

	list_for_each_entry_safe(name, next, &rpost_names, link)
		kfree(name);
}
