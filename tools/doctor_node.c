// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: may this user open the node? */
#include <errno.h>
#include <grp.h>
#include <linux/major.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"

/* Makes the finding of a node that is not there, or is not the module's. */
static void report_wrong(struct doctor *doc, const char *check, char *what)
{
	int minor = module_minor();
	bool udev = file_exists("/run/udev/control");

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
			minor < 0 ?
			text_printf("rm -f " RPOST_DEVICE_PATH "; modprobe -r rdma_post && modprobe rdma_post, as root") :
			text_printf("%srm -f " RPOST_DEVICE_PATH " && mknod -m 666 " RPOST_DEVICE_PATH " c %d %d, as root",
				    udev ? "udevadm trigger /sys/class/misc/rdma_post; if that does not help, " : "",
				    MISC_MAJOR, minor),
	});
}

static void report_mode(struct doctor *doc, const struct stat *st)
{
	const struct passwd *user = getpwuid(st->st_uid);
	const char *owner = user ? user->pw_name : "?";
	const struct group *group = getgrgid(st->st_gid);
	const char *group_name = group ? group->gr_name : "?";
	/* Group root has far more than RDMA. */
	bool by_group = (st->st_mode & 060) == 060 && st->st_gid;
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
			text_printf("in 90-rdma-post.rules MODE=\"0666\", or MODE=\"0660\", GROUP=\"rdma\" with groupadd -r rdma and usermod -aG rdma USER; then udevadm control --reload, udevadm trigger /sys/class/misc/rdma_post, and log in again"),
	});
}

/* What the errors of opening and of the first requests mean. */
static const struct {
	int err;
	const char *check;
	const char *why;
	const char *advice;
} errors[] = {
	{ EPERM, "node.cgroup",
	  "probably the device cgroup, or else a seccomp filter, of this container or service forbids it",
	  "podman, docker: --device " RPOST_DEVICE_PATH "; systemd: DeviceAllow=" RPOST_DEVICE_PATH " rw" },
	{ ENOMEM, "node.memory",
	  "this user has used up the memory that the module allows (max_user_bytes), or the memory cgroup has no more",
	  "end programs of this user, or raise /sys/module/rdma_post/parameters/max_user_bytes" },
	{ EPROTONOSUPPORT, "node.abi",
	  "the module speaks another version of the interface than this program",
	  "install module and tools of the same release" },
	{ ENOTTY, "node.abi",
	  "the module speaks another version of the interface than this program",
	  "install module and tools of the same release" },
	{ ENODEV, "node.open", "the module is not loaded, or being unloaded",
	  "modprobe rdma_post, as root" },
	{ ENXIO, "node.open", "the module is not loaded, or being unloaded",
	  "modprobe rdma_post, as root" },
	{ EMFILE, "node.open", "this process may open no more files",
	  "ulimit -n NUMBER; LimitNOFILE= of a service" },
	{ ENFILE, "node.open", "the system may open no more files",
	  "end programs, or raise fs.file-max" },
	{ 0, "node.open", NULL, "look at the kernel's log (dmesg)" },
};

static void report_error(struct doctor *doc, int err)
{
	size_t i = 0;

	while (errors[i].err && errors[i].err != err)
		i++;
	doctor_report(doc, (struct finding){
		.check = errors[i].check,
		.status = DOCTOR_PROBLEM,
		.object = text_printf(RPOST_DEVICE_PATH),
		.what = text_printf("%s: %s", doc->devs.fd < 0 ? "cannot be opened" :
				    "can be opened, but does not answer", strerror(err)),
		.why = errors[i].why ? text_printf("%s", errors[i].why) : NULL,
		.advice = text_printf("%s", errors[i].advice),
	});
}

/**
 * check_node() - is the node there, the module's, and may this user open it?
 * @doc: the visit
 */
void check_node(struct doctor *doc)
{
	int minor = module_minor(), err = -doc->devs.error;
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
