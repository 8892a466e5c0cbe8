// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions of librdmacm and libibverbs that only fail, as symbols.txt says: kernel
 * verbs or the module do not support them.  Most programs are linked so that every
 * symbol they use must exist.
 *
 * They ignore their arguments, so no header that declares them is included.  -1 is
 * returned as a long long, for an int, a long or an off_t.
 */
#include <errno.h>
#include <stddef.h>

#define STUB(type, name) __attribute__((visibility("default"))) type name(void)

#define FAILS_errno(name, err) STUB(int, name) { return err; }
#define FAILS_minus_one(name, err) STUB(long long, name) { errno = err; return -1; }
#define FAILS_null(name, err) STUB(void *, name) { errno = err; return NULL; }
#define FAILS_0(name, err) STUB(int, name) { return 0; }

#include "stubs.h"
