/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Policies, as the user writes and reads them. */
#ifndef POLICY_H
#define POLICY_H

#include <getopt.h>
#include <rdma/rdma_post_abi.h>
#include <stdbool.h>

/**
 * struct policy - a policy that is being put together
 * @rules: what it says; its peers are @peers
 * @peers: the peers
 * @burst: the user has given the burst
 * @given: the user has given anything
 */
struct policy {
	struct rpost_policy_rules rules;
	bool burst;
	bool given;
	struct rpost_peer peers[RPOST_MAX_PEERS];
};

/* The values of policies' options, for getopt_long(). */
enum {
	POLICY_RATE = 300,
	POLICY_OPS,
	POLICY_BURST,
	POLICY_LENGTH,
	POLICY_PINNED,
	POLICY_CONNECTIONS,
	POLICY_CONNECT,
	POLICY_LISTEN,
	POLICY_NO_LISTEN,
	POLICY_NO_REMOTE,
	POLICY_NO_ATOMICS,
	POLICY_NO_RAW,
	POLICY_NO_MULTICAST,
};

#define POLICY_OPTIONS							\
	{ "rate", required_argument, NULL, POLICY_RATE },		\
	{ "ops", required_argument, NULL, POLICY_OPS },			\
	{ "burst", required_argument, NULL, POLICY_BURST },		\
	{ "length", required_argument, NULL, POLICY_LENGTH },		\
	{ "pinned", required_argument, NULL, POLICY_PINNED },		\
	{ "connections", required_argument, NULL, POLICY_CONNECTIONS },	\
	{ "connect", required_argument, NULL, POLICY_CONNECT },		\
	{ "listen", required_argument, NULL, POLICY_LISTEN },		\
	{ "no-listen", no_argument, NULL, POLICY_NO_LISTEN },		\
	{ "no-remote", no_argument, NULL, POLICY_NO_REMOTE },		\
	{ "no-atomics", no_argument, NULL, POLICY_NO_ATOMICS },		\
	{ "no-raw", no_argument, NULL, POLICY_NO_RAW },			\
	{ "no-multicast", no_argument, NULL, POLICY_NO_MULTICAST }

#define POLICY_HELP							\
	"      --rate BYTES         bytes in a second that may be posted\n"	\
	"      --ops NUMBER         work requests in a second\n"		\
	"      --burst SECONDS      how much may be posted at once after a pause, as time at\n" \
	"                           the full rate; by default 0.1, at most 10. With 0, a\n" \
	"                           program that wakes late stays below its rate\n" \
	"      --length BYTES       greatest length of one work request\n"	\
	"      --pinned BYTES       pinned memory\n"			\
	"      --connections NUMBER queue pairs that can be connected\n"	\
	"      --connect PEER       whom to connect to, and nobody else: 10.0.0.0/8,\n" \
	"                           10.0.0.1:7471, 10.0.0.1:7471-7480, [fd00::/8]:7471,\n" \
	"                           none; up to 64 times\n"		\
	"      --listen PLACE       where to listen, and nowhere else: as a PEER, or :7471\n" \
	"      --no-listen          not to listen at all\n"			\
	"      --no-remote          no memory that a peer may read or write\n"	\
	"      --no-atomics         no atomic operations\n"			\
	"      --no-raw             no queue pairs without the connection manager\n" \
	"      --no-multicast       no multicast groups\n"

bool policy_take(const char *command, int opt, const char *arg, struct policy *policy);
bool policy_finish(const char *command, struct policy *policy);
char *policy_text(const struct policy *policy);

#endif /* POLICY_H */
