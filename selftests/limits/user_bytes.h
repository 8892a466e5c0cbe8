/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory that is charged to users, for tests that run as root and open the
 * device as other users.  Functions return 0 or a negative errno unless their
 * comment says otherwise.
 */
#ifndef USER_BYTES_H
#define USER_BYTES_H

#include "rpost_test.h"

#define USERS		RP_DEBUGFS "users"
#define ALICE		65533
#define BOB		65532
#define ROOT		0
#define MB		(1l << 20)

#define NEED_ROOT()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "needs root and debugfs");		\
	} while (0)

int user_open(uid_t uid);
long user_charged(uid_t uid, bool exempt);

static inline long user_bytes(uid_t uid)
{
	return user_charged(uid, false);
}

static inline int user_set_limit(long bytes)
{
	return rp_set_number("max_user_bytes", bytes);
}

long user_free_memory(void);
int user_take(struct rp_end *end, uint32_t depth);

#endif /* USER_BYTES_H */
