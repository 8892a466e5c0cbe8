// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reads policies from options, and writes them as options. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "tool.h"

#define DEFAULT_BURST_US	100000
#define MAX_BURST_S		10
#define ALL_PORTS		65535

/* Reads a number, maybe with K, M, G or T: 1000, or 1024 with Ki and so on. */
static bool read_number(const char *command, const char *text, uint64_t least, uint64_t *number)
{
	static const char letters[] = "KMGT";
	unsigned int base = 1000, power = 0;
	const char *letter;
	double scaled;
	char *end;

	scaled = strtod(text, &end);
	letter = *end ? strchr(letters, *end) : NULL;
	if (letter) {
		power = letter - letters + 1;
		end++;
		if (*end == 'i') {
			base = 1024;
			end++;
		}
	}
	while (power--)
		scaled *= base;
	if (end != text && !*end && scaled >= least && scaled <= 1e18) {
		*number = scaled;
		return true;
	}
	tool_error("%s: %s: not a number from %llu to 10^18, maybe with K, M, G or T", command,
		   text, (unsigned long long)least);
	return false;
}

static bool read_burst(const char *command, const char *text, uint32_t *us)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && !*end && seconds >= 0 && seconds <= MAX_BURST_S) {
		*us = seconds * 1e6;
		return true;
	}
	tool_error("%s: %s: not a number of seconds from 0 to %d", command, text, MAX_BURST_S);
	return false;
}

/* Reads a port, or two with a hyphen between. */
static bool read_ports(const char *text, struct rpost_peer *peer)
{
	unsigned long first, last;
	char *end;

	first = last = strtoul(text, &end, 10);
	if (end == text || *text == '-' || *text == '+')
		return false;
	if (*end == '-') {
		text = end + 1;
		last = strtoul(text, &end, 10);
		if (end == text || *text == '-' || *text == '+')
			return false;
	}
	if (*end || first > last || last > ALL_PORTS)
		return false;
	peer->first_port = first;
	peer->last_port = last;
	return true;
}

/* Reads an address, maybe with a prefix: 10.0.0.0/8, fd00::/64. */
static bool read_net(char *text, struct rpost_peer *peer)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long prefix, bits;

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, peer->addr + 12) == 1) {
		peer->addr[10] = peer->addr[11] = 0xff;
		bits = 32;
	} else if (inet_pton(AF_INET6, text, peer->addr) == 1) {
		bits = 128;
	} else {
		return false;
	}
	prefix = bits;
	if (slash) {
		prefix = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end || prefix > bits || slash[1] == '-')
			return false;
	}
	peer->prefix = 128 - bits + prefix;
	for (bits = peer->prefix; bits < 128; bits++) {
		if (peer->addr[bits / 8] & (0x80 >> bits % 8))
			return false;
	}
	return true;
}

/* NET, NET:PORTS with IPv4, [NET]:PORTS, or :PORTS. */
static bool read_peer(const char *arg, struct rpost_peer *peer)
{
	char *text = text_printf("%s", arg), *net = text, *ports = NULL, *end;
	bool right;

	peer->last_port = ALL_PORTS;
	if (*net == '[') {
		net++;
		end = strchr(net, ']');
		ports = end && end[1] == ':' ? end + 2 : NULL;
		if (!end || (end[1] && !ports)) {
			free(text);
			return false;
		}
		*end = '\0';
	} else {
		end = strchr(net, ':');
		if (end && !strchr(end + 1, ':')) {
			*end = '\0';
			ports = end + 1;
		}
	}
	right = (!*net && ports) || read_net(net, peer);
	if (right && ports)
		right = read_ports(ports, peer);
	free(text);
	return right;
}

static bool take_peer(const char *command, const char *arg, bool listen, struct policy *policy)
{
	struct rpost_policy_rules *rules = &policy->rules;
	struct rpost_peer peer = { .listen = listen };

	rules->has |= listen ? RPOST_POLICY_LISTEN : RPOST_POLICY_CONNECT;
	if (!strcmp(arg, "none"))
		return true;
	if (!read_peer(arg, &peer)) {
		tool_error("%s: %s: not an address, as 10.0.0.0/8, 10.0.0.1:7471 or "
			   "[fd00::/64]:7471-7480, with no bit set behind the prefix", command, arg);
		return false;
	}
	if (rules->num_peers == RPOST_MAX_PEERS) {
		tool_error("%s: %s: more than %d addresses", command, arg, RPOST_MAX_PEERS);
		return false;
	}
	policy->peers[rules->num_peers++] = peer;
	return true;
}

/**
 * policy_take() - take an option of a policy
 * @command: for messages
 * @opt: POLICY_*
 * @arg: its argument
 * @policy: gets it
 *
 * Return: false after a message, or for an option of others.
 */
bool policy_take(const char *command, int opt, const char *arg, struct policy *policy)
{
	struct rpost_policy_rules *rules = &policy->rules;
	uint64_t number = 0;
	bool good;

	policy->given = true;
	switch (opt) {
	case POLICY_RATE:
		rules->has |= RPOST_POLICY_BYTES;
		good = read_number(command, arg, 1, &number);
		rules->bytes_per_s = number;
		return good;
	case POLICY_OPS:
		rules->has |= RPOST_POLICY_OPS;
		good = read_number(command, arg, 1, &number);
		rules->ops_per_s = number;
		return good;
	case POLICY_BURST:
		policy->burst = true;
		return read_burst(command, arg, &rules->burst_us);
	case POLICY_LENGTH:
		rules->has |= RPOST_POLICY_LENGTH;
		good = read_number(command, arg, 0, &number);
		rules->max_length = number;
		return good;
	case POLICY_PINNED:
		rules->has |= RPOST_POLICY_PINNED;
		good = read_number(command, arg, 0, &number);
		rules->max_pinned = number;
		return good;
	case POLICY_CONNECTIONS:
		rules->has |= RPOST_POLICY_QPS;
		good = read_number(command, arg, 0, &number);
		rules->max_qps = number < UINT32_MAX ? number : UINT32_MAX;
		return good;
	case POLICY_CONNECT:
		return take_peer(command, arg, false, policy);
	case POLICY_LISTEN:
		return take_peer(command, arg, true, policy);
	case POLICY_NO_LISTEN:
		rules->forbid |= RPOST_FORBID_LISTEN;
		return true;
	case POLICY_NO_REMOTE:
		rules->forbid |= RPOST_FORBID_REMOTE;
		return true;
	case POLICY_NO_ATOMICS:
		rules->forbid |= RPOST_FORBID_ATOMIC;
		return true;
	case POLICY_NO_RAW:
		rules->forbid |= RPOST_FORBID_RAW;
		return true;
	case POLICY_NO_MULTICAST:
		rules->forbid |= RPOST_FORBID_MULTICAST;
		return true;
	default:
		return false;
	}
}

/**
 * policy_finish() - set what the user has not, after the last option
 * @command: for messages
 * @policy: the policy
 *
 * Return: false after a message.
 */
bool policy_finish(const char *command, struct policy *policy)
{
	struct rpost_policy_rules *rules = &policy->rules;
	bool rate = rules->has & (RPOST_POLICY_BYTES | RPOST_POLICY_OPS);

	rules->peers = rules->num_peers ? (uintptr_t)policy->peers : 0;
	if (rate && !policy->burst)
		rules->burst_us = DEFAULT_BURST_US;
	if (rate || !policy->burst)
		return true;
	tool_error("%s: --burst is for --rate and --ops", command);
	return false;
}

static bool is_ipv4(const struct rpost_peer *peer)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return peer->prefix >= 96 && !memcmp(peer->addr, mapped, sizeof(mapped));
}

/* Returns a peer as the user writes it, to be freed. */
static char *peer_text(const struct rpost_peer *peer)
{
	bool ipv4 = is_ipv4(peer), all = !peer->first_port && peer->last_port == ALL_PORTS;
	char addr[INET6_ADDRSTRLEN], *net, *ports, *text;
	int bits = ipv4 ? 32 : 128, prefix = peer->prefix - (ipv4 ? 96 : 0);

	inet_ntop(ipv4 ? AF_INET : AF_INET6, peer->addr + (ipv4 ? 12 : 0), addr, sizeof(addr));
	net = prefix == bits ? text_printf("%s", addr) : text_printf("%s/%d", addr, prefix);
	ports = peer->first_port == peer->last_port ?
		text_printf(":%u", peer->first_port) :
		text_printf(":%u-%u", peer->first_port, peer->last_port);
	if (!peer->prefix && !all)
		text = text_printf("%s", ports);
	else if (all)
		text = text_printf("%s", net);
	else
		text = text_printf(ipv4 ? "%s%s" : "[%s]%s", net, ports);
	free(net);
	free(ports);
	return text;
}

static void add(char **text, const char *option, const char *value)
{
	char *longer = text_printf("%s%s--%s%s%s", *text, **text ? " " : "", option,
				   *value ? " " : "", value);

	free(*text);
	*text = longer;
}

static void add_number(char **text, const char *option, bool has, uint64_t number)
{
	char value[24];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)number);
	if (has)
		add(text, option, value);
}

static void add_peers(char **text, const struct policy *policy, bool listen)
{
	const char *option = listen ? "listen" : "connect";
	bool any = false;
	char *value;
	uint32_t i;

	for (i = 0; i < policy->rules.num_peers; i++) {
		if (policy->peers[i].listen != listen)
			continue;
		value = peer_text(&policy->peers[i]);
		add(text, option, value);
		free(value);
		any = true;
	}
	if (!any)
		add(text, option, "none");
}

/**
 * policy_text() - write a policy as options
 * @policy: the policy
 *
 * Return: the text, to be freed.
 */
char *policy_text(const struct policy *policy)
{
	static const struct { uint32_t bit; const char *option; } forbids[] = {
		{ RPOST_FORBID_LISTEN, "no-listen" }, { RPOST_FORBID_REMOTE, "no-remote" },
		{ RPOST_FORBID_ATOMIC, "no-atomics" }, { RPOST_FORBID_RAW, "no-raw" },
		{ RPOST_FORBID_MULTICAST, "no-multicast" },
	};
	const struct rpost_policy_rules *rules = &policy->rules;
	uint32_t has = rules->has;
	char *text = text_printf("%s", ""), burst[24];
	size_t i;

	add_number(&text, "rate", has & RPOST_POLICY_BYTES, rules->bytes_per_s);
	add_number(&text, "ops", has & RPOST_POLICY_OPS, rules->ops_per_s);
	snprintf(burst, sizeof(burst), "%g", rules->burst_us / 1e6);
	if (has & (RPOST_POLICY_BYTES | RPOST_POLICY_OPS))
		add(&text, "burst", burst);
	add_number(&text, "length", has & RPOST_POLICY_LENGTH, rules->max_length);
	add_number(&text, "pinned", has & RPOST_POLICY_PINNED, rules->max_pinned);
	add_number(&text, "connections", has & RPOST_POLICY_QPS, rules->max_qps);
	if (has & RPOST_POLICY_CONNECT)
		add_peers(&text, policy, false);
	if (has & RPOST_POLICY_LISTEN)
		add_peers(&text, policy, true);
	for (i = 0; i < ARRAY_SIZE(forbids); i++)
		if (rules->forbid & forbids[i].bit)
			add(&text, forbids[i].option, "");
	return text;
}
