// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: may this user open the node? */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"

#define MISC_MAJOR	10

/* Makes the finding of a node that is not there, or is not the module's. */
static void report_wrong(struct doctor *doc, const char *check, char *what)
{
	int minor = doctor_module_minor();

	doctor_report(doc, (struct finding){
		.check = check,
		.status = DOCTOR_PROBLEM,
		.object = text_printf(RPOST_DEVICE_PATH),
		.what = what,
		.why = doctor_in_container() ?
			text_printf("this container was not given the node, or one of before the module was loaded again") :
			text_printf("neither devtmpfs nor udev has made it"),
		.advice = doctor_in_container() ?
			text_printf("start the container with --device " RPOST_DEVICE_PATH) :
			text_printf("rm -f " RPOST_DEVICE_PATH " && mknod -m 666 " RPOST_DEVICE_PATH " c %d %d, as root",
				    MISC_MAJOR, minor),
	});
}

static void report_mode(struct doctor *doc, const struct stat *st)
{
	const struct passwd *user = getpwuid(st->st_uid);
	const char *owner = user ? user->pw_name : "?";
	const struct group *group = getgrgid(st->st_gid);
	const char *group_name = group ? group->gr_name : "?";
	bool by_group = (st->st_mode & 060) == 060;
	bool by_all = (st->st_mode & 06) == 06;

	doctor_report(doc, (struct finding){
		.check = "node.mode",
		.status = DOCTOR_PROBLEM,
		.object = text_printf(RPOST_DEVICE_PATH),
		.what = text_printf("this user may not open it: mode %04o, owner %s, group %s",
				    st->st_mode & 07777, owner, group_name),
		.why = by_all ? text_printf("the mode allows it, so the file system is mounted nodev, or a security module (SELinux, AppArmor, Landlock) forbids it") :
			NULL,
		.advice = by_all ? text_printf("look at findmnt -T " RPOST_DEVICE_PATH ", and for a denial in the audit log") :
			by_group ? text_printf("usermod -aG %s USER, then log in again",
					       group_name) :
			text_printf("set MODE=\"0666\", or GROUP and MODE=\"0660\", in 90-rdma-post.rules; udevadm trigger"),
	});
}

static void report_error(struct doctor *doc, int err)
{
	doctor_report(doc, (struct finding){
		.check = err == EPERM ? "node.cgroup" :
			 err == ENOMEM ? "node.memory" :
			 err == EPROTONOSUPPORT || err == ENOTTY ? "node.abi" :
			 "node.open",
		.status = DOCTOR_PROBLEM,
		.object = text_printf(RPOST_DEVICE_PATH),
		.what = err == EPROTONOSUPPORT || err == ENOTTY ?
			text_printf("the module speaks another version of the interface than this program") :
			text_printf("cannot be opened: %s", strerror(err)),
		.why = err == EPERM ? text_printf("the device cgroup of this container or service forbids it") :
		       err == ENOMEM ? text_printf("this user has used up the memory that the module allows (max_user_bytes), or the memory cgroup has no more") :
		       NULL,
		.advice = err == EPERM ? text_printf("podman, docker: --device " RPOST_DEVICE_PATH "; systemd: DeviceAllow=" RPOST_DEVICE_PATH " rw") :
			err == ENOMEM ? text_printf("end programs of this user, or raise /sys/module/rdma_post/parameters/max_user_bytes") :
			err == EPROTONOSUPPORT || err == ENOTTY ? text_printf("install module and tools of the same release") :
			NULL,
	});
}

/**
 * check_node() - is the node there, the module's, and may this user open it?
 * @doc: the visit
 */
void check_node(struct doctor *doc)
{
	int minor = doctor_module_minor(), err = -doc->devs.error;
	struct stat st;

	if (stat(RPOST_DEVICE_PATH, &st)) {
		report_wrong(doc, "node.missing", text_printf("%s", strerror(errno)));
		return;
	}
	if (!S_ISCHR(st.st_mode) || (minor >= 0 && st.st_rdev !=
				     makedev(MISC_MAJOR, minor))) {
		report_wrong(doc, "node.stale",
			     text_printf("it is not the module's node, which is %d:%d",
					 MISC_MAJOR, minor));
		return;
	}
	if (err == EACCES) {
		report_mode(doc, &st);
		return;
	}
	if (err) {
		report_error(doc, err);
		return;
	}
	doc->has = NEED_NODE;
	doctor_report(doc, (struct finding){
		.check = "node.open",
		.object = text_printf(RPOST_DEVICE_PATH),
		.what = text_printf("user %u can open it; mode %04o, interface version %u",
				    getuid(), st.st_mode & 07777,
				    doc->devs.query.abi_version),
	});
}
