/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol of file_client and file_server:
 *
 *   client                            server
 *   connect, with struct offer   -->  allocates and registers memory
 *                                <--  accepts, with struct region
 *   RDMA writes                  ==>
 *   struct report                -->  computes the digest, saves the file
 *                                <--  struct report
 *   RDMA reads                   <==
 *   struct report                -->
 *                                <--  struct report
 *   disconnect                   -->
 *
 * All numbers are big endian.
 */
#ifndef FILE_TRANSFER_H
#define FILE_TRANSFER_H

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <openssl/sha.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PORT "7471"

struct offer {
	uint64_t size;		/* size of the file in bytes */
};

struct region {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint32_t reserved;
};

struct report {
	uint8_t digest[SHA256_DIGEST_LENGTH];
};

static const char *program;

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

#define PROGRESS_WIDTH 70

static bool progress_shown;

/* Says what takes long, to people at a terminal only. */
static inline void progress_text(const char *text)
{
	progress_shown = isatty(STDERR_FILENO);
	if (progress_shown)
		fprintf(stderr, "\r%-*.*s\r", PROGRESS_WIDTH, PROGRESS_WIDTH, text);
}

/* Says how far a transfer is, at most five times a second. */
static inline void progress(const char *what, size_t done, size_t total,
			    double start)
{
	double time = now(), rate = done / (time - start);
	static double last;
	char text[128];

	if (!done || time - start < 0.5 || time - last < 0.2)
		return;
	last = time;
	snprintf(text, sizeof(text), "%s %.1f of %.1f MB, %.1f MB/s, %.0f s left",
		 what, done / 1e6, total / 1e6, rate / 1e6, (total - done) / rate);
	progress_text(text);
}

static inline void progress_end(void)
{
	if (progress_shown)
		progress_text("");
	progress_shown = false;
}

static inline void __attribute__((format(printf, 1, 2), noreturn))
die(const char *format, ...)
{
	va_list args;

	progress_end();
	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline void *allocate(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Registered memory is locked, and most users may lock little: ulimit -l. */
static inline void __attribute__((noreturn)) die_registering(size_t size)
{
	die("cannot register %zu bytes: %s%s", size, strerror(errno),
	    errno == ENOMEM ? "; compare with ulimit -l, or take a smaller file" : "");
}

static inline const char *hex(const uint8_t *digest, char *text)
{
	int i;

	for (i = 0; i < SHA256_DIGEST_LENGTH; i++)
		sprintf(text + 2 * i, "%02x", digest[i]);
	return text;
}

/* Prints a digest and returns whether it is the expected one. */
static inline bool check_digest(const char *what, const uint8_t *digest,
				const uint8_t *expected)
{
	bool same = !memcmp(digest, expected, SHA256_DIGEST_LENGTH);
	char text[2 * SHA256_DIGEST_LENGTH + 1];

	printf("%-11s sha256 %s %s\n", what, hex(digest, text),
	       same ? "(the same)" : "(DIFFERENT)");
	return same;
}

/* Posts a report inline, so that it needs no registration. */
static inline void post_report(struct rdma_cm_id *id, const uint8_t *digest)
{
	if (rdma_post_send(id, NULL, (void *)digest, sizeof(struct report), NULL,
			   IBV_SEND_INLINE | IBV_SEND_SIGNALED))
		die("sending a report: rdma_post_send: %s", strerror(errno));
}

static inline void send_report(struct rdma_cm_id *id, const uint8_t *digest)
{
	struct ibv_wc wc;

	post_report(id, digest);
	if (rdma_get_send_comp(id, &wc) != 1)
		die("sending a report: rdma_get_send_comp: %s", strerror(errno));
	if (wc.status)
		die("sending a report: %s", ibv_wc_status_str(wc.status));
}

/* Waits for a report.  The caller has posted a receive for it. */
static inline void wait_report(struct rdma_cm_id *id, const char *what)
{
	struct ibv_wc wc;

	progress_text(what);
	if (rdma_get_recv_comp(id, &wc) != 1)
		die("waiting for a report: rdma_get_recv_comp: %s", strerror(errno));
	progress_end();
	if (wc.status)
		die("waiting for a report: %s", ibv_wc_status_str(wc.status));
	if (wc.byte_len != sizeof(struct report))
		die("a report of %u bytes", wc.byte_len);
}

static inline void save(const char *path, const uint8_t *data, size_t size)
{
	FILE *out = fopen(path, "wb");

	progress_text("saving the file");
	if (!out || fwrite(data, 1, size, out) != size || fclose(out))
		die("saving %s: %s", path, strerror(errno));
	progress_end();
	printf("saved as    %s\n", path);
}

#endif
