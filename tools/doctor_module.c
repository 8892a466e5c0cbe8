// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: is the module loaded, and if not, why? */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "doctor.h"

#define MODULES		"/lib/modules"
#define MAX_MODULE	(64u << 20)
#define SIGNATURE	"~Module signature appended~\n"

#define OTHER_KERNEL	"it was built for another kernel, or the RDMA drivers are those of an OFED and it was built with the kernel's headers"
#define BUILD_AGAIN	"build it again with the headers of the running kernel; on an OFED host with those of the OFED (/usr/src/ofa_kernel)"
#define SIGN		"sign it with a key that is enrolled; DKMS signs with /var/lib/dkms/mok.key; enrol it: mokutil --import /var/lib/dkms/mok.pub, restart, confirm"

enum answer { NO, YES, UNKNOWN };

/*
 * What the kernel says if it refuses a module, and what that means.  Lines about
 * signatures do not name the module; they may be about it if it is @is_signed.
 */
static const struct {
	const char *text;
	const char *check;
	const char *why;
	const char *advice;
	bool unnamed;
	enum answer is_signed;
} refusals[] = {
	{ .text = "disagrees about version of symbol", "module.symbols", OTHER_KERNEL, BUILD_AGAIN },
	/* Follows a line with "disagrees". */
	{ .text = "(err -22)", "module.symbols", OTHER_KERNEL, BUILD_AGAIN },
	{ .text = "version magic", "module.vermagic",
	  "it was built for another kernel",
	  "build it again with the headers of the running kernel" },
	{ .text = "Unknown symbol", "module.unknown_symbol",
	  "a module that it needs is not loaded, or this kernel lacks one, or it was built for another kernel",
	  "load it by modprobe and not by insmod; the kernel needs CONFIG_INFINIBAND_ADDR_TRANS" },
	{ .text = "unsigned module is rejected", "module.signature",
	  "the kernel takes signed modules only, as under Secure Boot, and this one is not signed",
	  SIGN, true, NO },
	{ .text = "unavailable key is rejected", "module.signature",
	  "the kernel does not know the key with which it is signed",
	  SIGN, true, YES },
	{ .text = "rdma_post: devices=", "module.parameter",
	  "the parameter devices is wrong",
	  "correct it in /etc/modprobe.d or on the command line" },
};

/* Is the module loaded?  Either file may be hidden from a container. */
static enum answer is_loaded(const struct doctor *doc)
{
	char misc[64];

	if (!doc->devs.error || module_minor() >= 0 ||
	    file_exists("/sys/module/" MODULE_NAME))
		return YES;
	file_line(misc, sizeof(misc), "/proc/misc");
	return misc[0] || file_exists("/sys/module") ? NO : UNKNOWN;
}

/* Returns the path of the file that modprobe would load for a kernel, or NULL. */
static char *find_file(const char *release)
{
	char *dep = text_printf(MODULES "/%s/modules.dep", release), *path = NULL;
	char *text = file_read(dep, MAX_MODULE, NULL), *line, *rest = text;
	const char *name;

	while (!path && rest && (line = strsep(&rest, "\n"))) {
		line[strcspn(line, ":")] = '\0';
		name = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
		if (strncmp(name, MODULE_NAME ".ko", strlen(MODULE_NAME ".ko")))
			continue;
		path = line[0] == '/' ? text_printf("%s", line) :
			text_printf(MODULES "/%s/%s", release, line);
	}
	if (path && !file_exists("%s", path)) {
		free(path);
		path = NULL;
	}
	free(text);
	free(dep);
	return path;
}

/* Asks modinfo, which many users do not have in PATH.  Returns NULL without it. */
static char *modinfo(const char *path, const char *field)
{
	static const char *const programs[] = {
		"modinfo", "/sbin/modinfo", "/usr/sbin/modinfo",
	};
	char *value = NULL;
	size_t i;

	for (i = 0; !value && i < ARRAY_SIZE(programs); i++)
		value = file_command((char *[]){ (char *)programs[i], "-F",
						 (char *)field, (char *)path, NULL });
	return value;
}

/* Sets what the module's file says of itself; @vermagic may become NULL. */
static enum answer read_file(const char *path, char **vermagic)
{
	static const char key[] = "\0vermagic=";
	size_t size, len = strlen(SIGNATURE);
	enum answer is_signed;
	char *data, *found;

	if (strcmp(strrchr(path, '.'), ".ko")) {
		*vermagic = modinfo(path, "vermagic");
		data = modinfo(path, "sig_id");
		is_signed = !data ? UNKNOWN : *data ? YES : NO;
		free(data);
		return is_signed;
	}
	*vermagic = NULL;
	data = file_read(path, MAX_MODULE, &size);
	if (!data)
		return UNKNOWN;
	found = memmem(data, size, key, sizeof(key) - 1);
	if (found)
		*vermagic = text_printf("%s", found + sizeof(key) - 1);
	is_signed = size >= len && !memcmp(data + size - len, SIGNATURE, len);
	free(data);
	return is_signed;
}

/* Returns why only signed modules are loaded, or NULL if others are, too. */
static const char *signatures_wanted(void)
{
	char line[128];

	file_line(line, sizeof(line), "/sys/kernel/security/lockdown");
	if (strstr(line, "[integrity]") || strstr(line, "[confidentiality]"))
		return "the kernel is locked down";
	file_line(line, sizeof(line), "/sys/module/module/parameters/sig_enforce");
	return line[0] == 'Y' ? "the kernel enforces signatures" : NULL;
}

static bool secure_boot(void)
{
	size_t size = 0;
	char *data = file_read("/sys/firmware/efi/efivars/SecureBoot-"
			       "8be4df61-93ca-11d2-aa0d-00e098032b8c", 16, &size);
	bool on = data && size >= 5 && data[4] == 1;

	free(data);
	return on;
}

static bool log_is_readable(void)
{
	char *log = file_kernel_log();
	bool readable = log;

	free(log);
	return readable;
}

/* Does the line say that the kernel refuses the module, or one that may be it? */
static bool is_refusal(const char *line, size_t i, enum answer is_signed)
{
	if (!strstr(line, refusals[i].text))
		return false;
	if (strstr(line, MODULE_NAME ": "))
		return true;
	return refusals[i].unnamed && signatures_wanted() &&
	       (is_signed == UNKNOWN || is_signed == refusals[i].is_signed);
}

/* Returns the last line of the log in which the kernel refuses the module. */
static char *last_refusal(enum answer is_signed, size_t *which)
{
	char *log = file_kernel_log(), *line, *rest = log, *last = NULL;
	size_t i;

	while (rest && (line = strsep(&rest, "\n"))) {
		for (i = 0; i < ARRAY_SIZE(refusals); i++)
			if (is_refusal(line, i, is_signed))
				break;
		if (i == ARRAY_SIZE(refusals))
			continue;
		/* Lines about each symbol follow the one that says why. */
		if (last && !strcmp(refusals[i].check, refusals[*which].check) &&
		    !strcmp(refusals[i].text, "(err -22)"))
			continue;
		free(last);
		/* With the time, but not the level. */
		last = text_printf("%s", strchr(line, '[') ? strchr(line, '[') : line);
		*which = i;
	}
	free(log);
	return last;
}

/* Reports that there is no module for this kernel. */
static void report_no_file(struct doctor *doc, const char *release)
{
	char *path = NULL, *other = NULL;
	struct dirent *entry;
	DIR *dir;

	dir = opendir(MODULES);
	while (dir && !path && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		path = find_file(entry->d_name);
		if (path)
			other = text_printf("%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	doctor_report(doc, (struct finding){
		.check = "module.file",
		.status = DOCTOR_PROBLEM,
		.object = text_printf(MODULE_NAME),
		.what = path ?
			text_printf("the module is installed for kernel %s, but %s runs",
				    other, release) :
			text_printf("the module is not loaded, and not installed for kernel %s",
				    release),
		.advice = text_printf("install linux-headers-%s, then rdma-post-dkms (dkms autoinstall), or make modules_install in the source, and depmod -a; then modprobe rdma_post",
				   release),
	});
	free(path);
	free(other);
}

/* Reports a module that was built for another kernel.  Returns if it is refused. */
static bool report_vermagic(struct doctor *doc, const char *path,
			    const char *vermagic, const char *release)
{
	/* The versions of the symbols count then, and not the release. */
	bool note = strstr(vermagic, " modversions ");

	if (!strncmp(vermagic, release, strlen(release)) &&
	    vermagic[strlen(release)] == ' ')
		return false;
	doctor_report(doc, (struct finding){
		.check = "module.vermagic",
		.status = note ? DOCTOR_NOTE : DOCTOR_PROBLEM,
		.object = text_printf("%s", path),
		.what = text_printf("it was built for another kernel: %s; %s runs",
				    vermagic, release),
		.why = note ? text_printf("a kernel with CONFIG_MODVERSIONS takes it if the symbols that it needs are the same") :
			NULL,
		.advice = text_printf("build it again with linux-headers-%s", release),
	});
	return !note;
}

/* Reports a module without a signature that the kernel wants. */
static bool report_signature(struct doctor *doc, const char *path,
			     enum answer is_signed)
{
	const char *wanted = signatures_wanted();

	if (!wanted || is_signed == YES)
		return false;
	doctor_report(doc, (struct finding){
		.check = "module.signature",
		.status = is_signed == NO ? DOCTOR_PROBLEM : DOCTOR_UNKNOWN,
		.object = text_printf("%s", path),
		.what = is_signed == NO ? text_printf("the module is not signed") :
			text_printf("nothing tells whether the module is signed"),
		.why = text_printf("%s%s", wanted, secure_boot() ?
				   ", as Secure Boot is on" : ""),
		.advice = is_signed == NO ? text_printf(SIGN) :
			text_printf("install modinfo (of kmod), and run doctor again"),
	});
	return is_signed == NO;
}

/* Reports what the kernel said when it refused the module. */
static bool report_refusal(struct doctor *doc, enum answer is_signed)
{
	bool ofed = file_exists("/usr/src/ofa_kernel") ||
		    file_exists("/sys/module/mlx_compat");
	size_t i = 0;
	char *line = last_refusal(is_signed, &i);

	if (!line)
		return false;
	doctor_report(doc, (struct finding){
		.check = refusals[i].check,
		.status = DOCTOR_PROBLEM,
		.object = text_printf(MODULE_NAME),
		.what = text_printf("the log says that the kernel has refused %s: %s",
				    strstr(line, MODULE_NAME ": ") ? "the module" :
				    "a module, perhaps this one", line),
		.why = text_printf("%s%s", refusals[i].why,
				   ofed ? "; an OFED is installed" : ""),
		.advice = text_printf("%s", refusals[i].advice),
	});
	free(line);
	return true;
}

static void report_loaded(struct doctor *doc)
{
	char version[64] = "";

	file_line(version, sizeof(version), "/sys/module/" MODULE_NAME "/version");
	doctor_report(doc, (struct finding){
		.check = "module.loaded",
		.object = text_printf(MODULE_NAME),
		.what = text_printf("the module is loaded%s%s",
				    version[0] ? ", version " : "", version),
	});
}

static void report_hidden(struct doctor *doc)
{
	doctor_report(doc, (struct finding){
		.check = "module.loaded",
		.status = DOCTOR_UNKNOWN,
		.object = text_printf(MODULE_NAME),
		.what = text_printf("nothing tells whether the module is loaded: neither /proc/misc nor /sys/module can be read"),
		.advice = text_printf("%srdma-post doctor",
				      doctor_in_container() ? "on the host: " : "mount /proc and /sys; "),
	});
}

static void report_not_loaded(struct doctor *doc)
{
	bool inside = doctor_in_container();

	doctor_report(doc, (struct finding){
		.check = "module.loaded",
		.status = DOCTOR_PROBLEM,
		.object = text_printf(MODULE_NAME),
		.what = inside ? text_printf("the module is not loaded") :
			text_printf("the module is installed, but not loaded"),
		.why = inside ? text_printf("this is a container: the host's kernel needs the module") :
			log_is_readable() ? NULL :
			text_printf("the kernel's log may say why, which this user may not read: run doctor as root"),
		.advice = text_printf("%smodprobe rdma_post, as root; at each boot: echo rdma_post >/etc/modules-load.d/rdma_post.conf",
				      inside ? "on the host: " : ""),
	});
}

/**
 * check_module() - is the module loaded, and if not, why?
 * @doc: the visit
 */
void check_module(struct doctor *doc)
{
	enum answer loaded = is_loaded(doc), is_signed = UNKNOWN;
	char *path, *vermagic = NULL;
	struct utsname uts;
	bool found;

	/* If nothing tells, the node may. */
	if (loaded != NO)
		doc->has = NEED_MODULE;
	if (loaded == YES) {
		report_loaded(doc);
		return;
	}
	if (loaded == UNKNOWN) {
		report_hidden(doc);
		return;
	}
	/* The files of a container are not the host's. */
	if (doctor_in_container()) {
		report_not_loaded(doc);
		return;
	}
	uname(&uts);
	path = find_file(uts.release);
	if (path)
		is_signed = read_file(path, &vermagic);
	found = vermagic && report_vermagic(doc, path, vermagic, uts.release);
	found |= path && report_signature(doc, path, is_signed);
	found = found || report_refusal(doc, is_signed);
	if (!found && !path)
		report_no_file(doc, uts.release);
	else if (!found)
		report_not_loaded(doc);
	free(vermagic);
	free(path);
}
