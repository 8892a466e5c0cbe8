// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: is the module loaded, and if not, why? */
#include <dirent.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "doctor.h"

#define MODULES		"/lib/modules"
#define MAX_MODULE	(64u << 20)
#define SIGNATURE	"~Module signature appended~\n"

/* What the kernel says if it refuses a module, and what that means. */
static const struct {
	const char *text;
	const char *check;
	const char *why;
	const char *advice;
} refusals[] = {
	{ "disagrees about version of symbol", "module.symbols",
	  "it was built for another kernel, or the RDMA drivers are those of an OFED and it was built with the kernel's headers",
	  "build it again with the headers of the running kernel; on an OFED host with those of the OFED (/usr/src/ofa_kernel)" },
	/* Follows a line with "disagrees". */
	{ "(err -22)", "module.symbols",
	  "it was built for another kernel, or the RDMA drivers are those of an OFED and it was built with the kernel's headers",
	  "build it again with the headers of the running kernel; on an OFED host with those of the OFED (/usr/src/ofa_kernel)" },
	{ "version magic", "module.vermagic",
	  "it was built for another kernel",
	  "build it again with the headers of the running kernel" },
	{ "Unknown symbol", "module.unknown_symbol",
	  "a module that it needs is not loaded, or this kernel lacks one, or it was built for another kernel",
	  "load it by modprobe and not by insmod; the kernel needs CONFIG_INFINIBAND_ADDR_TRANS" },
	{ "unsigned module", "module.signature",
	  "the kernel takes signed modules only, as under Secure Boot, and this one is not signed",
	  "sign it with a key that is enrolled (mokutil --import KEY); DKMS does both with the key in /var/lib/dkms" },
	{ "unavailable key", "module.signature",
	  "the kernel does not know the key with which it is signed",
	  "enrol the key: mokutil --import KEY, then reboot and confirm" },
	{ "rdma_post: devices=", "module.parameter",
	  "the parameter devices is wrong",
	  "correct it in /etc/modprobe.d or on the command line" },
};

/* Returns the module's minor number, or -1 if it is not loaded. */
int doctor_module_minor(void)
{
	char *misc = file_read("/proc/misc", 65536, NULL), *line, *rest = misc;
	int minor = -1, n;
	char name[64];

	while (rest && (line = strsep(&rest, "\n")))
		if (sscanf(line, "%d %63s", &n, name) == 2 &&
		    !strcmp(name, MODULE_NAME))
			minor = n;
	free(misc);
	return minor;
}

/* Returns the path of the module's file for a kernel, or NULL. */
static char *find_file(const char *release)
{
	char *top = text_printf(MODULES "/%s", release), *path = NULL;
	char *paths[] = { top, NULL };
	FTSENT *entry;
	FTS *fts;

	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL);
	while (fts && !path && (entry = fts_read(fts)))
		if (entry->fts_info == FTS_F &&
		    !strncmp(entry->fts_name, MODULE_NAME ".ko",
			     strlen(MODULE_NAME ".ko")))
			path = text_printf("%s", entry->fts_path);
	if (fts)
		fts_close(fts);
	free(top);
	return path;
}

static bool is_compressed(const char *path)
{
	return !strstr(path, ".ko") || strcmp(strstr(path, ".ko"), ".ko");
}

/* Returns what the module's file says of itself, to be freed, or NULL. */
static char *file_field(const char *path, const char *field)
{
	char *const argv[] = { "modinfo", "-F", (char *)field, (char *)path, NULL };
	char *data, *key, *value = NULL;
	const char *found;
	size_t size, len;

	if (is_compressed(path))
		return file_command(argv);
	data = file_read(path, MAX_MODULE, &size);
	if (!data)
		return NULL;
	key = text_printf("%c%s=", 0, field);
	len = strlen(field) + 2;
	found = memmem(data, size, key, len);
	if (found)
		value = text_printf("%s", found + len);
	free(key);
	free(data);
	return value;
}

static bool is_signed(const char *path)
{
	char *signer = NULL, *data;
	size_t size, len = strlen(SIGNATURE);
	bool found;

	if (is_compressed(path)) {
		signer = file_field(path, "sig_id");
		found = signer && *signer;
		free(signer);
		return found;
	}
	data = file_read(path, MAX_MODULE, &size);
	found = data && size >= len &&
		!memcmp(data + size - len, SIGNATURE, len);
	free(data);
	return found;
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

/* Returns the last line of the log in which the kernel refuses the module. */
static char *last_refusal(size_t *which)
{
	char *log = file_kernel_log(), *line, *rest = log, *last = NULL;
	bool unnamed = signatures_wanted();
	size_t i;

	while (rest && (line = strsep(&rest, "\n"))) {
		for (i = 0; i < ARRAY_SIZE(refusals); i++) {
			/* Some lines do not name the module. */
			if (!strstr(line, refusals[i].text) ||
			    !(strstr(line, MODULE_NAME ": ") ||
			      (unnamed && strstr(line, "rejected"))))
				continue;
			/* Lines about each symbol follow the one that says why. */
			if (last && !strcmp(refusals[i].check, refusals[*which].check) &&
			    !strcmp(refusals[i].text, "(err -22)"))
				break;
			free(last);
			if (strstr(line, "] "))
				line = strstr(line, "] ") + 2;
			last = text_printf("%s", line);
			*which = i;
			break;
		}
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
		.why = doctor_in_container() ?
			text_printf("this is a container: the host's kernel needs the module") :
			NULL,
		.advice = text_printf("install linux-headers-%s, then rdma-post-dkms (dkms autoinstall), or make modules_install in the source; then modprobe rdma_post",
				   release),
	});
	free(path);
	free(other);
}

/* Reports a module whose file says that this kernel will refuse it. */
static bool report_file(struct doctor *doc, const char *path, const char *release)
{
	const char *wanted = signatures_wanted();
	char *vermagic = file_field(path, "vermagic");
	bool other = vermagic && (strncmp(vermagic, release, strlen(release)) ||
				  vermagic[strlen(release)] != ' ');

	if (other)
		doctor_report(doc, (struct finding){
			.check = "module.vermagic",
			.status = DOCTOR_PROBLEM,
			.object = text_printf("%s", path),
			.what = text_printf("it was built for another kernel: %s; %s runs",
					    vermagic, release),
			.advice = text_printf("build it again with linux-headers-%s",
					      release),
		});
	free(vermagic);
	if (wanted && !is_signed(path)) {
		doctor_report(doc, (struct finding){
			.check = "module.signature",
			.status = DOCTOR_PROBLEM,
			.object = text_printf("%s", path),
			.what = text_printf("the module is not signed"),
			.why = text_printf("%s%s", wanted, secure_boot() ?
					   ", as Secure Boot is on" : ""),
			.advice = text_printf("sign it with a key that is enrolled (mokutil --import KEY); DKMS does both with the key in /var/lib/dkms"),
		});
		return true;
	}
	return other;
}

/* Reports what the kernel said when it refused the module. */
static bool report_refusal(struct doctor *doc)
{
	bool ofed = file_exists("/usr/src/ofa_kernel") ||
		    file_exists("/sys/module/mlx_compat");
	size_t i = 0;
	char *line = last_refusal(&i);

	if (!line)
		return false;
	doctor_report(doc, (struct finding){
		.check = refusals[i].check,
		.status = DOCTOR_PROBLEM,
		.object = text_printf(MODULE_NAME),
		.what = text_printf("the kernel has refused the module: %s", line),
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

	doc->has = NEED_MODULE;
	file_line(version, sizeof(version), "/sys/module/" MODULE_NAME "/version");
	doctor_report(doc, (struct finding){
		.check = "module.loaded",
		.object = text_printf(MODULE_NAME),
		.what = text_printf("the module is loaded%s%s",
				    version[0] ? ", version " : "", version),
	});
}

/**
 * check_module() - is the module loaded, and if not, why?
 * @doc: the visit
 */
void check_module(struct doctor *doc)
{
	struct utsname uts;
	bool found;
	char *path;

	if (doctor_module_minor() >= 0 || !doc->devs.error) {
		report_loaded(doc);
		return;
	}
	uname(&uts);
	path = find_file(uts.release);
	found = path && report_file(doc, path, uts.release);
	found = found || report_refusal(doc);
	if (!found && !path)
		report_no_file(doc, uts.release);
	else if (!found)
		doctor_report(doc, (struct finding){
			.check = "module.loaded",
			.status = DOCTOR_PROBLEM,
			.object = text_printf(MODULE_NAME),
			.what = text_printf("the module is installed, but not loaded"),
			.why = log_is_readable() ? NULL :
				text_printf("the kernel's log may say why, which this user may not read: run doctor as root"),
			.advice = text_printf("modprobe rdma_post, as root; at each boot: echo rdma_post >/etc/modules-load.d/rdma_post.conf"),
		});
	free(path);
}
