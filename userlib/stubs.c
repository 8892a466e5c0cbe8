// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions of librdmacm and libibverbs that only fail, as symbols.txt says: kernel
 * verbs or the module do not support them.  Most programs are linked so that every
 * symbol they use must exist.
 *
 * They ignore their arguments, so no header that declares them is included.  A long
 * long is returned where an int, a long or an off_t is.
 */
#include <errno.h>
#include <stddef.h>

#define STUB(name) __attribute__((visibility("default"))) long long name(void)
#define STUB_NULL(name) __attribute__((visibility("default"))) void *name(void)

#define FAILS_errno(name, err) STUB(name) { return err; }
#define FAILS_minus_one(name, err) STUB(name) { errno = err; return -1; }
#define FAILS_null(name, err) STUB_NULL(name) { errno = err; return NULL; }
#define FAILS_0(name, err) STUB(name) { return 0; }

#include "stubs.h"
