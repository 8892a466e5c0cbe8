// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests network namespaces.  An open file belongs to the namespace in which it
 * was opened, as a socket does.  A failure means that a program sees or uses a
 * device of another namespace.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/wait.h>

#include "command_env.h"
#include "pass_fd.h"
#include "path.h"
#include "rpost_own.h"

static int new_netns(void)
{
	return unshare(CLONE_NEWNET) ? -errno : 0;
}

/*
 * "rdma system": in mode "shared" each namespace has all devices, in mode
 * "exclusive" a device has one namespace.  The mode cannot change while other
 * namespaces exist; unused ones take a while to go.
 */
static int set_mode(const char *mode)
{
	uint64_t end = rp_now_ms() + 3 * TEST_TIMEOUT_MS;
	char command[128];
	int ret;

	snprintf(command, sizeof(command),
		 "rdma system set netns %s >/dev/null 2>&1", mode);
	while ((ret = system(command)) && rp_now_ms() < end)
		usleep(100000);
	return ret;
}

static bool is_shared(void)
{
	return !system("rdma system show 2>/dev/null | grep -q 'netns shared'");
}

static bool names_device(const struct command *cmd)
{
	const struct field *field;

	for_each_field(field, cmd) {
		if (field->kind == K_REG && field->reg == R_DEV)
			return true;
	}
	return false;
}

/* A device's number from elsewhere does not help: all commands fail. */
static int cannot_use(int fd, uint32_t device)
{
	struct rpost_query query = { .size = sizeof(query) };
	struct env env = { .end.fd = fd, .end.device = device };
	const struct command *cmd;
	char arg[MAX_STRUCT];

	RP_TRY(rp_first_device(fd));
	RP_TRY(rp_ioctl(fd, RPOST_IOC_QUERY, &query));
	RP_TRY(query.num_devices);
	for_each_command(cmd) {
		if (!names_device(cmd))
			continue;
		RP_TRY(env_fill(&env, cmd, arg));
		RP_TRY(rp_ioctl(fd, cmd->nr, arg) != -ENODEV);
	}
	return 0;
}

/* An id cannot be bound to an address that its namespace does not have. */
static int cannot_bind(int fd)
{
	int channel = rp_event_channel(fd);
	uint32_t id;

	if (channel < 0)
		return channel;
	RP_TRY(rp_create_id(fd, channel, &id));
	RP_TRY(!rp_bind(fd, id, 0));
	RP_TRY(!rp_resolve_addr(fd, id, 1));
	RP_TRY(rp_destroy(fd, RPOST_OBJ_ID, id));
	close(channel);
	return 0;
}

/*
 * Make an id with a device that cma has chosen without a look at namespaces: for an
 * address that is any it takes the first active one.  The first call fails, but leaves
 * the id an interface.
 */
static int resolve_any(int fd, int channel, uint32_t *id)
{
	struct sockaddr_in6 link_local = {
		.sin6_family = AF_INET6, .sin6_scope_id = if_nametoindex("lo"),
	};
	struct rpost_bind_addr bind = { .size = sizeof(bind), .addr_len = sizeof(link_local) };

	inet_pton(AF_INET6, "fe80::1", &link_local.sin6_addr);
	memcpy(&bind.addr, &link_local, sizeof(link_local));
	RP_TRY(rp_create_id(fd, channel, id));
	bind.id = *id;
	RP_TRY(!rp_ioctl(fd, RPOST_IOC_BIND_ADDR, &bind));
	RP_TRY(rp_resolve_ip(fd, *id, (struct in_addr) { INADDR_ANY }, 1, 10000));
	return rp_expect(channel, *id, RPOST_EVENT_ADDR_RESOLVED);
}

/* Nor does such an id tell of a device that its namespace does not have. */
static int cannot_resolve_any(int fd)
{
	int channel = rp_event_channel(fd);
	struct rpost_query_id query;
	uint32_t id;

	if (channel < 0)
		return channel;
	RP_TRY(resolve_any(fd, channel, &id));
	RP_TRY(rp_query_id(fd, id, &query) != -ENODEV);
	RP_TRY(rp_resolve_route(fd, id) != -ENODEV);
	RP_TRY(rp_destroy(fd, RPOST_OBJ_ID, id));
	close(channel);
	return 0;
}

/* Run @call in a child in a new namespace.  Returns its result. */
static int in_netns(int (*call)(int fd, uint32_t device), int fd,
		    uint32_t device)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(new_netns() || call(fd, device) ? 1 : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

FIXTURE(netns) {
	int fd;
	uint32_t device;
	bool skip, was_shared;
};

FIXTURE_SETUP(netns)
{
	self->skip = geteuid() || system("rdma system show >/dev/null 2>&1");
	if (self->skip)
		return;
	self->was_shared = is_shared();
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->device = rp_first_device(self->fd);
}

FIXTURE_TEARDOWN(netns)
{
	if (self->skip)
		return;
	close(self->fd);
	EXPECT_EQ(0, set_mode(self->was_shared ? "shared" : "exclusive"));
}

#define NEED_RDMA()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "no rdma(8), or not root");	\
	} while (0)

TEST_F(netns, a_file_stays_where_it_was_opened)
{
	struct rp_end c, s;
	uint32_t listener;
	int status;
	pid_t pid;

	NEED_RDMA();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* The files are opened here, and used from a new namespace. */
		if (rp_end_init(&c) || rp_end_init(&s) || new_netns() ||
		    rp_first_device(c.fd) != self->device ||
		    rp_listener(&s, &listener) ||
		    rp_join(&c, &s, listener, 0))
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

static int see_but_cannot_bind(int fd, uint32_t device)
{
	int own = rp_open();

	(void)fd;
	RP_TRY(rp_first_device(own) != device);
	return cannot_bind(own);
}

TEST_F(netns, shared)
{
	NEED_RDMA();
	ASSERT_EQ(0, set_mode("shared"));
	EXPECT_EQ(0, in_netns(see_but_cannot_bind, self->fd, self->device));
}

/* ----------------------------------------------------------- addresses */

#define VLAN		"rpost_ns"
#define VLAN_ADDR	"10.97.0.1"

/* In the first namespace: an end, its GID, and a way to itself */
static struct rp_end host;
static struct rpost_gid host_gid;
static struct rpost_ah_attr host_addr;

static int init_host(void)
{
	RP_TRY(rp_end_init(&host));
	RP_TRY(rp_own_gid(&host, &host_gid));
	return rp_own_addr(&host, &host_addr);
}

/* Connect a queue pair, or make an address handle.  Returns 0 if both work, -EINVAL if neither. */
static int try_addr(struct rp_end *end, const struct rpost_ah_attr *addr)
{
	struct rpost_qp_attr attr = rp_init_attr(RPOST_QPT_RC, addr->port_num);
	uint32_t ah;
	int ret;

	RP_TRY(rp_create_own(end, RPOST_QPT_RC, 0));
	RP_TRY(rp_modify(end, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, addr, end->qp_num);
	ret = rp_modify(end, &attr);
	RP_TRY(rp_qp_state(end) != (ret ? RPOST_QPS_INIT : RPOST_QPS_RTR));
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	return rp_create_ah(end->fd, end->pd, addr, &ah) == ret ? ret : -EIO;
}

static int has_no_addresses(int fd, uint32_t device)
{
	struct rpost_gid gid;
	struct rp_end end;

	(void)fd;
	(void)device;
	RP_TRY(rp_end_init(&end));
	RP_TRY(rp_own_gid(&end, &gid) != -ENOENT);
	return try_addr(&end, &host_addr) != -EINVAL;
}

/* Give process @pid's namespace a VLAN on the interface of the first one's GID. */
static int make_vlan(pid_t first, pid_t pid)
{
	char path[64], name[IF_NAMESIZE], command[128];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", first);
	if (setns(open(path, O_RDONLY), CLONE_NEWNET) ||
	    !if_indextoname(host_gid.ndev_ifindex, name))
		return -errno;
	snprintf(command, sizeof(command), "ip link add link %s name " VLAN
		 " netns %d type vlan id 43", name, pid);
	return system(command);
}

static int has_its_own_addresses(int fd, uint32_t device)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	pid_t first = getppid(), me = getpid(), pid = fork();
	struct rpost_ah_attr addr;
	struct rpost_gid gid = {};
	struct rp_end end;
	int status, ret;

	(void)fd;
	(void)device;
	if (!pid)
		_exit(make_vlan(first, me) ? 1 : 0);
	RP_TRY(waitpid(pid, &status, 0) != pid || status);
	RP_TRY(system("ip addr add " VLAN_ADDR "/24 dev " VLAN " && "
		      "ip link set " VLAN " up && ip link set lo up"));
	inet_pton(AF_INET, VLAN_ADDR, &rp_addr4.sin_addr);
	RP_TRY(rp_end_init(&end));
	while ((ret = rp_own_gid(&end, &gid)) == -ENOENT ||
	       memcmp(gid.gid + 12, &rp_addr4.sin_addr, 4)) {
		if (rp_now_ms() > limit)
			return -ETIME;
		usleep(1000);
	}
	RP_TRY(ret);
	RP_TRY(gid.ndev_ifindex != if_nametoindex(VLAN));
	RP_TRY(rp_own_addr(&end, &addr));
	RP_TRY(try_addr(&end, &addr));
	RP_TRY(try_addr(&end, &host_addr) != -EINVAL);
	/* A file of the first namespace does not have this address, wherever it is used. */
	RP_TRY(try_addr(&host, &host_addr));
	return try_addr(&host, &addr) != -EINVAL;
}

/* Run @call in a new namespace, with @host in the first. */
static void beside_host(struct __test_metadata *_metadata, FIXTURE_DATA(netns) *self,
			int (*call)(int fd, uint32_t device))
{
	NEED_RDMA();
	ASSERT_EQ(0, set_mode("shared"));
	ASSERT_EQ(0, init_host());
	if (!host_gid.ndev_ifindex)
		SKIP(return, "the device's GIDs have no interface");
	EXPECT_EQ(0, try_addr(&host, &host_addr));
	EXPECT_EQ(0, in_netns(call, self->fd, self->device));
	rp_end_close(&host);
}

TEST_F(netns, addresses_of_others)
{
	beside_host(_metadata, self, has_no_addresses);
}

/* The program names the host's address as its own, in a path to the host. */
static int has_no_path_from_others(int fd, uint32_t device)
{
	struct ib_path_rec_data path;
	struct rp_end end;

	(void)fd;
	(void)device;
	RP_TRY(rp_end_init(&end));
	RP_TRY(resolve_any(end.fd, end.channel, &end.id));
	rp_pack_path(&path, host_gid.gid, host_gid.gid);
	return rp_set_path(&end, &path, sizeof(path)) != -ENODEV;
}

TEST_F(netns, paths_from_others)
{
	if (access("/proc/net/if_inet6", F_OK))
		SKIP(return, "no IPv6, by which the id gets an interface");
	beside_host(_metadata, self, has_no_path_from_others);
}

TEST_F(netns, addresses_of_ones_own)
{
	beside_host(_metadata, self, has_its_own_addresses);
}

static int see_nothing(int fd, uint32_t device)
{
	int own = rp_open();

	if (own < 0)
		return -errno;
	/* The file from outside still has the device. */
	RP_TRY(rp_first_device(fd) != device);
	RP_TRY(cannot_use(own, device));
	if (!rp_is_iwarp(fd, device))
		RP_TRY(cannot_resolve_any(own));
	return cannot_bind(own);
}

TEST_F(netns, exclusive)
{
	NEED_RDMA();
	ASSERT_EQ(0, set_mode("exclusive"));
	EXPECT_EQ(self->device, rp_first_device(self->fd));
	EXPECT_EQ(0, in_netns(see_nothing, self->fd, self->device));
}

/* Like rp_end_init(), but on the device called @name. */
static int init_on(struct rp_end *end, const char *name)
{
	uint32_t ids[16], i;
	struct rpost_query_devices devices = {
		.size = sizeof(devices),
		.devices = (uintptr_t)ids,
		.count = 16,
	};
	struct rpost_query_device query;

	memset(end, 0, sizeof(*end));
	end->fd = rp_open();
	RP_TRY(rp_ioctl(end->fd, RPOST_IOC_QUERY_DEVICES, &devices));
	for (i = 0; i < devices.count && i < 16; i++) {
		RP_TRY(rp_query_device(end->fd, ids[i], &query));
		if (!strcmp((char *)query.name, name))
			end->device = ids[i];
	}
	end->channel = rp_event_channel(end->fd);
	RP_TRY(rp_alloc_pd(end->fd, end->device, &end->pd));
	return rp_create_cq(end->fd, end->device, 64, -1, &end->cq);
}

/* Connect within a namespace that has an address of its own. */
static int connect_inside(int fd, uint32_t device)
{
	struct rp_end c, s;
	uint32_t listener;

	(void)fd;
	(void)device;
	RP_TRY(system("ip link add rpost0 type dummy && "
		      "ip addr add 10.99.0.1/24 dev rpost0 && "
		      "ip link set rpost0 up && ip link set lo up && "
		      "rdma link add rpostrxe type rxe netdev rpost0"));
	inet_pton(AF_INET, "10.99.0.1", &rp_addr4.sin_addr);
	RP_TRY(init_on(&c, "rpostrxe"));
	RP_TRY(init_on(&s, "rpostrxe"));
	RP_TRY(rp_listener(&s, &listener));
	RP_TRY(rp_join(&c, &s, listener, 0));
	rp_end_close(&c);
	rp_end_close(&s);
	return system("rdma link del rpostrxe");
}

TEST_F(netns, with_an_address_of_its_own)
{
	NEED_RDMA();
	if (system("grep -qw rxe_namespace_init /proc/kallsyms"))
		SKIP(return, "no driver that knows network namespaces");
	ASSERT_EQ(0, set_mode("shared"));
	EXPECT_EQ(0, in_netns(connect_inside, self->fd, self->device));
}

/* A file that was opened without devices has none anywhere. */
TEST_F(netns, a_file_from_elsewhere)
{
	int sockets[2], fd, status;
	pid_t pid;

	NEED_RDMA();
	ASSERT_EQ(0, set_mode("exclusive"));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (new_netns())
			_exit(1);
		fd = rp_open();
		_exit(fd < 0 || send_fd(sockets[1], fd));
	}
	fd = recv_fd(sockets[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(0, cannot_use(fd, self->device));
	EXPECT_EQ(0, cannot_bind(fd));
	/* The namespace ends with the file; the teardown waits for that. */
	close(fd);
}

TEST_HARNESS_MAIN
