/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The interface between the rdma_post kernel module and programs.
 *
 * Programs open /dev/rdma_post and use the ioctls below.  Most want
 * librdma_post, which presents librdmacm's and libibverbs' API over it.
 */
#ifndef _UAPI_RDMA_POST_ABI_H
#define _UAPI_RDMA_POST_ABI_H

#include <linux/ioctl.h>
#include <linux/socket.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every command takes a pointer to a struct that begins with ``__u32 size``
 * and ``__u32 flags``.  The program sets @size to the size of the struct that
 * it was compiled with.  The kernel refuses a struct that is shorter than the
 * command's first version.  It accepts a longer one (up to 64 KiB) if the bytes
 * that it does not know are zero.  If it knows more fields than the program,
 * it takes them as zero.  It writes output fields back up to the program's
 * @size, and returns 0 except where its description says otherwise.  An ioctl that
 * fails changes nothing, again except where its description says otherwise.  The work
 * requests of a post follow its struct, and belong to its @size.
 *
 * Errors with the same meaning in every command:
 *
 * ============  ============================================================
 * errno         meaning
 * ============  ============================================================
 * ENOTTY        the command number is not known
 * EINVAL        @size is too small, a value is out of range, or the object
 *               is not in a state in which the command makes sense
 * E2BIG         bytes that this kernel does not know are not zero, or @size is
 *               above 64 KiB
 * EOPNOTSUPP    an unknown flag or opcode, a reserved field that is not zero,
 *               or something that the device cannot do
 * ENOENT        a handle that names no object of the right type in this file
 * EOVERFLOW     an address or length computation wraps around
 * ENOTCONN      the operation needs a connection
 * EBUSY         other objects use the object
 * ENOMEM        out of memory, or the limit of locked memory, of the memory
 *               cgroup or of one user (max_user_bytes) has been reached, or the
 *               queue is full
 * ENOBUFS       no memory for the copy of a post's work requests
 * EMFILE        this file's limit of objects or queue entries has been reached, or
 *               the process has no file descriptor left
 * EAGAIN        the limit of the caller's rdma cgroup has been reached, or an
 *               event channel that does not block has no event
 * ENODEV        the device has been removed, or does not exist
 * EBADF         a file descriptor is not one of this file's channels
 * EFAULT        a pointer does not name readable (writable) memory
 * EMSGSIZE      a memory region is larger than the device can take
 * EPERM/EACCES  a privileged port, a memory access that is not allowed, or what a
 *               policy does not allow (RPOST_IOC_SET_POLICY)
 * ============  ============================================================
 */

/* The version of this interface.  It changes only when programs would break. */
#define RPOST_ABI_VERSION	1

#define RPOST_DEVICE_PATH	"/dev/rdma_post"

#define RPOST_IOC_TYPE		0xBD

/* Numbers of the commands.  From 0x40 on they are commands of event channels. */
enum rpost_cmd {
	RPOST_CMD_QUERY			= 0x00,
	RPOST_CMD_QUERY_DEVICES		= 0x01,
	RPOST_CMD_QUERY_DEVICE		= 0x02,
	RPOST_CMD_QUERY_PORT		= 0x03,
	RPOST_CMD_DESTROY		= 0x04,
	RPOST_CMD_ALLOC_PD		= 0x05,
	RPOST_CMD_REG_MR		= 0x06,
	RPOST_CMD_CREATE_COMP_CHANNEL	= 0x07,
	RPOST_CMD_CREATE_CQ		= 0x08,
	RPOST_CMD_ARM_CQ		= 0x09,
	RPOST_CMD_POLL_CQ		= 0x0a,
	RPOST_CMD_CREATE_EVENT_CHANNEL	= 0x0b,
	RPOST_CMD_CREATE_ID		= 0x0c,
	RPOST_CMD_BIND_ADDR		= 0x0d,
	RPOST_CMD_RESOLVE_ADDR		= 0x0e,
	RPOST_CMD_RESOLVE_ROUTE		= 0x0f,
	RPOST_CMD_QUERY_ID		= 0x10,
	RPOST_CMD_LISTEN		= 0x11,
	RPOST_CMD_CONNECT		= 0x12,
	RPOST_CMD_ACCEPT		= 0x13,
	RPOST_CMD_REJECT		= 0x14,
	RPOST_CMD_DISCONNECT		= 0x15,
	RPOST_CMD_CREATE_QP		= 0x16,
	RPOST_CMD_QUERY_QP		= 0x17,
	RPOST_CMD_POST_SEND		= 0x18,
	RPOST_CMD_POST_RECV		= 0x19,
	RPOST_CMD_MIGRATE_ID		= 0x1a,
	RPOST_CMD_MODIFY_QP		= 0x1b,
	RPOST_CMD_QUERY_GIDS		= 0x1c,
	RPOST_CMD_QUERY_PKEYS		= 0x1d,
	RPOST_CMD_RESIZE_CQ		= 0x1e,
	RPOST_CMD_CREATE_SRQ		= 0x1f,
	RPOST_CMD_MODIFY_SRQ		= 0x20,
	RPOST_CMD_QUERY_SRQ		= 0x21,
	RPOST_CMD_POST_SRQ_RECV		= 0x22,
	RPOST_CMD_CREATE_AH		= 0x23,
	RPOST_CMD_ATTACH_MCAST		= 0x24,
	RPOST_CMD_DETACH_MCAST		= 0x25,
	RPOST_CMD_CREATE_ASYNC_CHANNEL	= 0x26,
	RPOST_CMD_SET_OPTION		= 0x27,
	RPOST_CMD_NOTIFY		= 0x28,
	RPOST_CMD_ESTABLISH		= 0x29,
	RPOST_CMD_INIT_QP_ATTR		= 0x2a,
	RPOST_CMD_JOIN_MCAST		= 0x2b,
	RPOST_CMD_LEAVE_MCAST		= 0x2c,
	RPOST_CMD_ADVISE_MR		= 0x2d,
	RPOST_CMD_MODIFY_CQ		= 0x2e,
	RPOST_CMD_WRITE_EVENT		= 0x2f,
	RPOST_CMD_SHARE_DEVICE		= 0x30,
	RPOST_CMD_QUERY_OBJECT		= 0x31,
	RPOST_CMD_COUNT_WRS		= 0x32,
	RPOST_CMD_REG_DMABUF_MR		= 0x33,
	RPOST_CMD_SET_POLICY		= 0x34,
	RPOST_CMD_GET_POLICY		= 0x35,
	RPOST_CMD_GET_EVENT		= 0x40,
};

/* ------------------------------------------------------------ the file */

/**
 * struct rpost_query - ioctl(RPOST_IOC_QUERY)
 * @size: sizeof(struct rpost_query)
 * @flags: must be 0
 * @abi_version: out: RPOST_ABI_VERSION of the module
 * @num_devices: out: RDMA devices that this file can see
 * @features: out: 0; bits for what comes after the first release
 * @max_wr_bytes: out: longest block of work requests that a post takes
 * @num_objects: out: objects that live in this file
 * @num_refused: out: RDMA devices of the file's network namespace that the
 *               module does not offer, since it does not know whether their
 *               drivers keep programs out of memory that is not theirs
 * @reserved: must be 0
 *
 * Tells a program which module it talks to.
 */
struct rpost_query {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 num_devices;
	__aligned_u64 features;
	__u32 max_wr_bytes;
	__u32 num_objects;
	__u32 num_refused;
	__u32 reserved;
};

#define RPOST_IOC_QUERY		_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY)

/**
 * enum rpost_obj_type - types of objects that handles name
 * @RPOST_OBJ_PD: protection domain
 * @RPOST_OBJ_MR: memory region
 * @RPOST_OBJ_CQ: completion queue
 * @RPOST_OBJ_QP: queue pair
 * @RPOST_OBJ_ID: connection id
 * @RPOST_OBJ_SRQ: shared receive queue
 * @RPOST_OBJ_AH: address handle
 */
enum rpost_obj_type {
	RPOST_OBJ_PD = 1,
	RPOST_OBJ_MR,
	RPOST_OBJ_CQ,
	RPOST_OBJ_QP,
	RPOST_OBJ_ID,
	RPOST_OBJ_SRQ,
	RPOST_OBJ_AH,
};

/**
 * struct rpost_destroy - ioctl(RPOST_IOC_DESTROY)
 * @size: sizeof(struct rpost_destroy)
 * @flags: must be 0
 * @type: enum rpost_obj_type of the object
 * @handle: the object
 *
 * Destroys one object.  The module first moves a queue pair to the error state
 * and drains it: work requests that are still outstanding do not complete, and
 * no completion of the queue pair appears once the call has returned.  If no other
 * queue pair uses its completion queue, no event of that comes until a new one does,
 * be there still entries in the ring; a request for an event stays.  The call
 * closes the connection of an id.  It drops events of the id that have not been
 * fetched, and asynchronous events of the object that have not been read.
 * Channels are file descriptors and end with close(2).
 *
 * Errors: EBUSY if others depend on the object: memory regions, queue pairs,
 * shared receive queues and address handles on a protection domain; queue pairs
 * on a completion queue, a shared receive queue or an id; sends whose
 * completions have not been polled from the device on an address handle.
 * ENOENT if @handle is not an object of @type.  The device's own error if it
 * does not give up a memory region or a queue pair: the object remains and may
 * be destroyed later, but posts can no longer use it, nor can MODIFY_QP
 * (ENODEV).
 */
struct rpost_destroy {
	__u32 size;
	__u32 flags;
	__u32 type;
	__u32 handle;
};

#define RPOST_IOC_DESTROY	_IO(RPOST_IOC_TYPE, RPOST_CMD_DESTROY)

/**
 * struct rpost_share_device - ioctl(RPOST_IOC_SHARE_DEVICE)
 * @size: sizeof(struct rpost_share_device)
 * @flags: must be 0
 * @device: in: number of a device
 * @fd: out: descriptor that names the device
 *
 * Makes a descriptor to be sent to another process, which does not know the
 * device.  It stands for the open file by which it was made: all commands can be
 * called on it, and all rings can be mapped by it.  Unlike one of dup(2) it is a
 * file of its own, which is no character device and has its own status flags, but
 * the access mode of the other.  Whoever has it has all objects of the file, on
 * all devices.  The file stays open, and its objects remain, as long as one of
 * these descriptors is open.
 *
 * Errors: ENODEV, EMFILE, ENOMEM, also at the limit of the opener of the file.
 */
struct rpost_share_device {
	__u32 size;
	__u32 flags;
	__u32 device;
	__s32 fd;
};

#define RPOST_IOC_SHARE_DEVICE	_IO(RPOST_IOC_TYPE, RPOST_CMD_SHARE_DEVICE)

/**
 * struct rpost_query_object - ioctl(RPOST_IOC_QUERY_OBJECT)
 * @size: sizeof(struct rpost_query_object)
 * @flags: must be 0
 * @type: in: RPOST_OBJ_PD or RPOST_OBJ_MR
 * @handle: in: the object
 * @device: out: number of its device
 * @pd: out: its protection domain
 * @lkey: out: local key of a memory region, else 0
 * @rkey: out: remote key of a memory region, else 0
 * @length: out: bytes of a memory region, else 0
 * @iova: out: first address of a memory region, else 0
 *
 * Tells a process what a handle names that another process has made.
 *
 * Errors: EINVAL for another @type, ENOENT, ENODEV.
 */
struct rpost_query_object {
	__u32 size;
	__u32 flags;
	__u32 type;
	__u32 handle;
	__u32 device;
	__u32 pd;
	__u32 lkey;
	__u32 rkey;
	__aligned_u64 length;
	__aligned_u64 iova;
};

#define RPOST_IOC_QUERY_OBJECT	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_OBJECT)

/* ------------------------------------------------------------ policies */

/**
 * enum rpost_policy_has - what a policy restricts
 * @RPOST_POLICY_BYTES: bytes in a second
 * @RPOST_POLICY_OPS: work requests in a second
 * @RPOST_POLICY_LENGTH: bytes of a work request
 * @RPOST_POLICY_PINNED: pinned memory
 * @RPOST_POLICY_QPS: connected queue pairs
 * @RPOST_POLICY_CONNECT: whom to connect to
 * @RPOST_POLICY_LISTEN: where to listen
 */
enum rpost_policy_has {
	RPOST_POLICY_BYTES		= 1 << 0,
	RPOST_POLICY_OPS		= 1 << 1,
	RPOST_POLICY_LENGTH		= 1 << 2,
	RPOST_POLICY_PINNED		= 1 << 3,
	RPOST_POLICY_QPS		= 1 << 4,
	RPOST_POLICY_CONNECT		= 1 << 5,
	RPOST_POLICY_LISTEN		= 1 << 6,
};

/**
 * enum rpost_forbid - what a policy forbids
 * @RPOST_FORBID_LISTEN: LISTEN
 * @RPOST_FORBID_REMOTE: regions that a peer may read or write (RPOST_ACCESS_REMOTE_*)
 * @RPOST_FORBID_ATOMIC: atomic operations
 * @RPOST_FORBID_RAW: queue pairs without an id
 * @RPOST_FORBID_MULTICAST: multicast groups
 */
enum rpost_forbid {
	RPOST_FORBID_LISTEN		= 1 << 0,
	RPOST_FORBID_REMOTE		= 1 << 1,
	RPOST_FORBID_ATOMIC		= 1 << 2,
	RPOST_FORBID_RAW		= 1 << 3,
	RPOST_FORBID_MULTICAST		= 1 << 4,
};

/**
 * struct rpost_peer - addresses and ports, of peers or to listen on
 * @addr: an address of IPv6, one of IPv4 as ::ffff:a.b.c.d, or a GID; its bits beyond
 *        @prefix are 0
 * @prefix: how many bits of @addr count, 0 to 128; 96 and more for IPv4
 * @listen: 1 to listen on, 0 to connect to
 * @first_port: lowest port
 * @last_port: highest port; 0 and 65535 are all ports.  Paths that name no port, of queue
 *             pairs without an id and of address handles, need all ports.
 * @reserved: must be 0
 */
struct rpost_peer {
	__u8 addr[16];
	__u8 prefix;
	__u8 listen;
	__u16 first_port;
	__u16 last_port;
	__u8 reserved[2];
};

#define RPOST_MAX_PEERS		64

/**
 * struct rpost_policy_rules - what a policy says
 * @has: RPOST_POLICY_*; fields of other restrictions must be 0
 * @forbid: RPOST_FORBID_*
 * @bytes_per_s: bytes of posted sends, reads, writes and atomic operations, 1 to 10^18
 * @ops_per_s: these work requests, 1 to 10^18
 * @burst_us: microseconds, at most 10000000: what the rate gives in this time may be posted
 *            at once, after a pause
 * @max_qps: queue pairs of the types RC and UC
 * @max_length: bytes of one work request that is not a receive
 * @max_pinned: bytes of memory that is pinned, also by the registration cache
 * @peers: user pointer to struct rpost_peer; 0 without any
 * @num_peers: how many there are, at most RPOST_MAX_PEERS; GET_POLICY: in: room, out:
 *             how many there are
 * @reserved: must be 0
 */
struct rpost_policy_rules {
	__u32 has;
	__u32 forbid;
	__aligned_u64 bytes_per_s;
	__aligned_u64 ops_per_s;
	__u32 burst_us;
	__u32 max_qps;
	__aligned_u64 max_length;
	__aligned_u64 max_pinned;
	__aligned_u64 peers;
	__u32 num_peers;
	__u32 reserved;
};

/**
 * enum rpost_policy_flag - flags of struct rpost_set_policy and struct rpost_get_policy
 * @RPOST_POLICY_CGROUP: of a cgroup, not of the file
 * @RPOST_POLICY_REMOVE: take the cgroup's policy away; SET_POLICY only
 */
enum rpost_policy_flag {
	RPOST_POLICY_CGROUP	= 1 << 0,
	RPOST_POLICY_REMOVE	= 1 << 1,
};

/**
 * struct rpost_set_policy - ioctl(RPOST_IOC_SET_POLICY)
 * @size: sizeof(struct rpost_set_policy)
 * @flags: RPOST_POLICY_*
 * @cgroup_fd: directory of the cgroup (version 2); 0 without RPOST_POLICY_CGROUP
 * @reserved: must be 0
 * @rules: the policy; zero with RPOST_POLICY_REMOVE
 *
 * Sets the policy of the file, or of a cgroup, which is that of all files that its
 * processes and those of cgroups below it have opened, and will open.  Each policy of a
 * file, its cgroup, and the cgroups above applies.  A policy of a file can only be made
 * narrower; one of a cgroup can be set, and taken away, at any time, and goes with the
 * cgroup.
 *
 * Rates hold at once.  Each work request is charged when it is posted, for at most ten
 * seconds; who has posted more than the rate waits in the next post, and can be killed
 * there.  Other restrictions hold for what is made or posted from then on; connections,
 * address handles and regions stay.  A command that a policy does not allow fails with
 * EPERM, one that would pass @max_qps with EMFILE, or @max_pinned with ENOMEM.
 *
 * Receives are free.  So is what peers read from this side's memory or write to it: bound
 * that at the peers, or forbid it by RPOST_FORBID_REMOTE.
 *
 * Errors: EPERM for a cgroup without CAP_SYS_RESOURCE in the initial user namespace; for
 * the policy of a file that another process has opened, or by a descriptor of
 * RPOST_IOC_SHARE_DEVICE; and for rules that would widen the file's.  EBADF if @cgroup_fd
 * is no directory of a cgroup; EINVAL for rules that make no sense; ENOENT if there is none
 * to take away; EOPNOTSUPP for unknown restrictions; EFAULT, ENOMEM.
 */
struct rpost_set_policy {
	__u32 size;
	__u32 flags;
	__s32 cgroup_fd;
	__u32 reserved;
	struct rpost_policy_rules rules;
};

#define RPOST_IOC_SET_POLICY	_IO(RPOST_IOC_TYPE, RPOST_CMD_SET_POLICY)

/**
 * struct rpost_get_policy - ioctl(RPOST_IOC_GET_POLICY)
 * @size: sizeof(struct rpost_get_policy)
 * @flags: RPOST_POLICY_CGROUP or 0
 * @cgroup: in: 0, or the last cgroup that was told; out: id of the next one with a
 *          policy, as name_to_handle_at(2) and the directory's inode have it.  0 without
 *          RPOST_POLICY_CGROUP
 * @rules: the policy
 * @ops: out: work requests that were posted under it
 * @bytes: out: their bytes
 * @errors: out: completions with an error, of work requests of any kind
 * @waits: out: how often posts have waited
 * @waited_us: out: how long, in all
 * @refusals: out: how often it did not allow a command or a work request
 * @pinned: out: bytes that count for max_pinned
 * @num_qps: out: queue pairs that count for max_qps
 * @reserved: must be 0
 *
 * Tells the file's policy, all of which is 0 if it has none, or those of cgroups, one by
 * one.
 *
 * Errors: EPERM for cgroups without CAP_SYS_RESOURCE in the initial user namespace; ENOENT
 * if there is no further one; EINVAL for more room than RPOST_MAX_PEERS; EFAULT,
 * ENOMEM.
 */
struct rpost_get_policy {
	__u32 size;
	__u32 flags;
	__aligned_u64 cgroup;
	struct rpost_policy_rules rules;
	__aligned_u64 ops;
	__aligned_u64 bytes;
	__aligned_u64 errors;
	__aligned_u64 waits;
	__aligned_u64 waited_us;
	__aligned_u64 refusals;
	__aligned_u64 pinned;
	__u32 num_qps;
	__u32 reserved;
};

#define RPOST_IOC_GET_POLICY	_IO(RPOST_IOC_TYPE, RPOST_CMD_GET_POLICY)

/* ------------------------------------------------------------- devices */

/**
 * struct rpost_query_devices - ioctl(RPOST_IOC_QUERY_DEVICES)
 * @size: sizeof(struct rpost_query_devices)
 * @flags: must be 0
 * @devices: user pointer to an array of __u32; may be 0 if @count is 0
 * @count: in: room in the array; out: number of devices, which may be more
 * @reserved: must be 0
 *
 * Lists the devices of the file's network namespace by number.  A number is
 * never used for another device while the module is loaded.
 */
struct rpost_query_devices {
	__u32 size;
	__u32 flags;
	__aligned_u64 devices;
	__u32 count;
	__u32 reserved;
};

#define RPOST_IOC_QUERY_DEVICES	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_DEVICES)

/* enum ibv_node_type and ibv_transport_type have the same values */
#define RPOST_NODE_CA		1
#define RPOST_NODE_RNIC		4
#define RPOST_TRANSPORT_IB	0
#define RPOST_TRANSPORT_IWARP	1

/* Bits of @odp_general_caps in struct rpost_query_device. */
#define RPOST_ODP_SUPPORT	0x1	/* RPOST_ACCESS_ON_DEMAND */

/*
 * How on-demand paging is limited, @odp_limits.  RPOST_ODP_WHOLE_PAGES: a region
 * must begin at a page boundary, under its own address, and all data of a packet
 * goes to or comes from the beginning of a page, whatever address in the page was
 * given.  It is right only for packets that begin at one and are not longer.
 */
#define RPOST_ODP_WHOLE_PAGES	0x1

/**
 * struct rpost_query_device - ioctl(RPOST_IOC_QUERY_DEVICE)
 * @size: sizeof(struct rpost_query_device)
 * @flags: must be 0
 * @device: in: number of the device, or 0 on a descriptor of SHARE_DEVICE for its
 *          device; out: the number
 * @phys_port_cnt: out: number of ports, counted from 1
 * @name: out: name of the device, with a terminating NUL
 * @node_guid: out: big endian
 * @sys_image_guid: out: big endian
 * @node_type: out: RPOST_NODE_*
 * @transport: out: RPOST_TRANSPORT_*
 * @fw_ver: out: firmware version, as in struct ib_device_attr
 * @max_mr_size: out: bytes in the largest region, if it begins and ends at
 *               page boundaries
 * @page_size_cap: out: bit mask of page sizes
 * @device_cap_flags: out: IB_UVERBS_DEVICE_* as in <rdma/ib_user_verbs.h>
 * @vendor_id: out: as in ibv_query_device(3)
 * @vendor_part_id: out: as in ibv_query_device(3)
 * @hw_ver: out: as in ibv_query_device(3)
 * @max_qp: out: queue pairs
 * @max_qp_wr: out: work requests on a queue that this module allows
 * @max_send_sge: out: entries in the list of a send
 * @max_recv_sge: out: entries in the list of a receive
 * @max_sge_rd: out: entries in the list of an RDMA read
 * @max_cq: out: completion queues
 * @max_cqe: out: entries in a completion queue
 * @max_mr: out: memory regions
 * @max_pd: out: protection domains
 * @max_qp_rd_atom: out: reads and atomics in flight towards a queue pair
 * @max_res_rd_atom: out: the same for the device
 * @max_qp_init_rd_atom: out: reads and atomics in flight from a queue pair
 * @atomic_cap: out: 0 none, 1 among queue pairs of the device, 2 global
 * @max_srq: out: shared receive queues
 * @max_srq_wr: out: work requests on one
 * @max_srq_sge: out: entries in a list on one
 * @max_ah: out: address handles
 * @max_mcast_grp: out: multicast groups
 * @max_mcast_qp_attach: out: queue pairs in a group
 * @max_total_mcast_qp_attach: out: queue pairs in all groups
 * @max_pkeys: out: partitions
 * @local_ca_ack_delay: out: as in ibv_query_device(3)
 * @num_comp_vectors: out: completion vectors
 * @max_inline_data: out: bytes of inline data that a queue pair may ask for
 * @reserved: out: 0
 * @index: out: the kernel's index of the device, which stays when it is renamed
 * @reserved3: out: 0
 * @max_moderate_count: out: completions for which an event of a completion queue
 *                      may wait, see MODIFY_CQ; 0 if the device cannot wait
 * @max_moderate_us: out: microseconds for which it may wait
 * @odp_general_caps: out: on-demand paging: RPOST_ODP_SUPPORT, or 0 if the device
 *                    does not have it or the administrator does not allow it
 * @odp_rc_caps: out: enum ibv_odp_transport_cap_bits on RC queue pairs
 * @odp_uc_caps: out: on UC queue pairs
 * @odp_ud_caps: out: on UD queue pairs
 * @odp_xrc_caps: out: 0
 * @odp_limits: out: RPOST_ODP_WHOLE_PAGES or 0
 * @reserved2: out: 0
 *
 * Errors: ENODEV.
 */
struct rpost_query_device {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 phys_port_cnt;
	__u8 name[64];
	__be64 node_guid;
	__be64 sys_image_guid;
	__u32 node_type;
	__u32 transport;
	__aligned_u64 fw_ver;
	__aligned_u64 max_mr_size;
	__aligned_u64 page_size_cap;
	__aligned_u64 device_cap_flags;
	__u32 vendor_id;
	__u32 vendor_part_id;
	__u32 hw_ver;
	__u32 max_qp;
	__u32 max_qp_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_sge_rd;
	__u32 max_cq;
	__u32 max_cqe;
	__u32 max_mr;
	__u32 max_pd;
	__u32 max_qp_rd_atom;
	__u32 max_res_rd_atom;
	__u32 max_qp_init_rd_atom;
	__u32 atomic_cap;
	__u32 max_srq;
	__u32 max_srq_wr;
	__u32 max_srq_sge;
	__u32 max_ah;
	__u32 max_mcast_grp;
	__u32 max_mcast_qp_attach;
	__u32 max_total_mcast_qp_attach;
	__u32 max_pkeys;
	__u32 local_ca_ack_delay;
	__u32 num_comp_vectors;
	__u32 max_inline_data;
	__u32 reserved;
	__u32 index;
	__u32 reserved3;
	__u32 max_moderate_count;
	__u32 max_moderate_us;
	__aligned_u64 odp_general_caps;
	__u32 odp_rc_caps;
	__u32 odp_uc_caps;
	__u32 odp_ud_caps;
	__u32 odp_xrc_caps;
	__u32 odp_limits;
	__u32 reserved2;
};

#define RPOST_IOC_QUERY_DEVICE	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_DEVICE)

/**
 * struct rpost_query_port - ioctl(RPOST_IOC_QUERY_PORT)
 * @size: sizeof(struct rpost_query_port)
 * @flags: must be 0
 * @device: in: number of the device
 * @port: in: number of the port, counted from 1
 * @state: out: enum ibv_port_state
 * @max_mtu: out: enum ibv_mtu
 * @active_mtu: out: enum ibv_mtu
 * @gid_tbl_len: out: entries in the GID table
 * @port_cap_flags: out: as in ibv_query_port(3)
 * @max_msg_sz: out: bytes in the longest message
 * @bad_pkey_cntr: out: as in ibv_query_port(3)
 * @qkey_viol_cntr: out: as in ibv_query_port(3)
 * @pkey_tbl_len: out: entries in the P_Key table
 * @lid: out: local id
 * @sm_lid: out: local id of the subnet manager
 * @lmc: out: mask control of @lid
 * @max_vl_num: out: as in ibv_query_port(3)
 * @sm_sl: out: as in ibv_query_port(3)
 * @subnet_timeout: out: as in ibv_query_port(3)
 * @init_type_reply: out: as in ibv_query_port(3)
 * @active_width: out: as in ibv_query_port(3)
 * @phys_state: out: as in ibv_query_port(3)
 * @link_layer: out: 1 InfiniBand, 2 Ethernet
 * @active_speed: out: as in ibv_query_port(3)
 * @grh_required: out: 1 if every address needs a GRH
 * @reserved: out: 0
 *
 * Errors: ENODEV, EINVAL for a port that the device does not have.
 */
struct rpost_query_port {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 port;
	__u32 state;
	__u32 max_mtu;
	__u32 active_mtu;
	__u32 gid_tbl_len;
	__u32 port_cap_flags;
	__u32 max_msg_sz;
	__u32 bad_pkey_cntr;
	__u32 qkey_viol_cntr;
	__u16 pkey_tbl_len;
	__u16 lid;
	__u16 sm_lid;
	__u8 lmc;
	__u8 max_vl_num;
	__u8 sm_sl;
	__u8 subnet_timeout;
	__u8 init_type_reply;
	__u8 active_width;
	__u8 phys_state;
	__u8 link_layer;
	__u16 active_speed;
	__u8 grh_required;
	__u8 reserved[7];
};

#define RPOST_IOC_QUERY_PORT	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_PORT)

/* enum ibv_gid_type has the same values */
#define RPOST_GID_IB		0
#define RPOST_GID_ROCE_V1	1
#define RPOST_GID_ROCE_V2	2

/**
 * struct rpost_gid - an entry of a port's GID table
 * @gid: the GID
 * @index: its index
 * @port: the port
 * @type: RPOST_GID_*
 * @ndev_ifindex: network interface, 0 if there is none
 */
struct rpost_gid {
	__u8 gid[16];
	__u32 index;
	__u32 port;
	__u32 type;
	__u32 ndev_ifindex;
};

/**
 * struct rpost_query_gids - ioctl(RPOST_IOC_QUERY_GIDS)
 * @size: sizeof(struct rpost_query_gids)
 * @flags: must be 0
 * @device: in: number of the device
 * @port: in: number of the port, or 0 for all
 * @first: in: index to begin with; must be 0 for all ports
 * @count: in: room in the array; out: entries written
 * @gids: in: user pointer to an array of struct rpost_gid
 *
 * Lists the valid entries, ordered by port and index, until the array is full.
 * A GID whose network interface is in another network namespace than the file
 * is as an empty entry, here and for @sgid_index of struct rpost_ah_attr.
 *
 * Errors: ENODEV, EINVAL for a port that the device does not have or an @first
 * that the table of @port does not have, EFAULT.
 */
struct rpost_query_gids {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 port;
	__u32 first;
	__u32 count;
	__aligned_u64 gids;
};

#define RPOST_IOC_QUERY_GIDS	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_GIDS)

/**
 * struct rpost_query_pkeys - ioctl(RPOST_IOC_QUERY_PKEYS)
 * @size: sizeof(struct rpost_query_pkeys)
 * @flags: must be 0
 * @device: in: number of the device
 * @port: in: number of the port
 * @first: in: index to begin with
 * @count: in: room in the array; out: entries written
 * @pkeys: in: user pointer to an array of __be16
 *
 * Errors: ENODEV, EINVAL for a port that the device does not have or an @first
 * beyond its table, EFAULT.
 */
struct rpost_query_pkeys {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 port;
	__u32 first;
	__u32 count;
	__aligned_u64 pkeys;
};

#define RPOST_IOC_QUERY_PKEYS	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_PKEYS)

/* ------------------------------------------------ asynchronous events */

/**
 * struct rpost_create_async_channel - ioctl(RPOST_IOC_CREATE_ASYNC_CHANNEL)
 * @size: sizeof(struct rpost_create_async_channel)
 * @flags: must be 0
 * @device: in: number of the device
 * @fd: out: file descriptor of the channel, close-on-exec
 *
 * An asynchronous channel is a file.  poll(2) reports when it is readable.
 * read(2) returns as many struct rpost_async_event records as fit, or fewer
 * after a signal, at least one; without an event it sleeps, or fails with EAGAIN if the file is
 * O_NONBLOCK.  It fails with EINVAL if the buffer has no room for a record.
 * From its creation on, each channel of a device gets the events of the device
 * and of this open file's objects on it.  The last event of a removed device is
 * RPOST_ASYNC_DEVICE_FATAL.  A channel keeps the 256 oldest unread events and
 * drops later ones.  An event that read(2) cannot write (EFAULT) stays.
 *
 * Errors: ENODEV, EMFILE for more than 128 channels of a device, ENOMEM.
 */
struct rpost_create_async_channel {
	__u32 size;
	__u32 flags;
	__u32 device;
	__s32 fd;
};

#define RPOST_IOC_CREATE_ASYNC_CHANNEL \
	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_ASYNC_CHANNEL)

/* enum ibv_event_type has the same values */
#define RPOST_ASYNC_CQ_ERR		0
#define RPOST_ASYNC_QP_FATAL		1
#define RPOST_ASYNC_QP_REQ_ERR		2
#define RPOST_ASYNC_QP_ACCESS_ERR	3
#define RPOST_ASYNC_COMM_EST		4
#define RPOST_ASYNC_SQ_DRAINED		5
#define RPOST_ASYNC_PATH_MIG		6
#define RPOST_ASYNC_PATH_MIG_ERR	7
#define RPOST_ASYNC_DEVICE_FATAL	8
#define RPOST_ASYNC_PORT_ACTIVE		9
#define RPOST_ASYNC_PORT_ERR		10
#define RPOST_ASYNC_LID_CHANGE		11
#define RPOST_ASYNC_PKEY_CHANGE		12
#define RPOST_ASYNC_SM_CHANGE		13
#define RPOST_ASYNC_SRQ_ERR		14
#define RPOST_ASYNC_SRQ_LIMIT_REACHED	15
#define RPOST_ASYNC_QP_LAST_WQE_REACHED	16
#define RPOST_ASYNC_CLIENT_REREGISTER	17
#define RPOST_ASYNC_GID_CHANGE		18

/**
 * struct rpost_async_event - record that read(2) on an async channel returns
 * @user_data: of the queue pair, completion queue or shared receive queue that
 *             has the event; 0 for an event of a port or the device
 * @event: RPOST_ASYNC_*
 * @obj_type: RPOST_OBJ_QP, RPOST_OBJ_CQ or RPOST_OBJ_SRQ, or 0
 * @handle: the object, or 0
 * @port: the port, or 0
 */
struct rpost_async_event {
	__aligned_u64 user_data;
	__u32 event;
	__u32 obj_type;
	__u32 handle;
	__u32 port;
};

/* --------------------------------- protection domains, memory regions */

/**
 * struct rpost_alloc_pd - ioctl(RPOST_IOC_ALLOC_PD)
 * @size: sizeof(struct rpost_alloc_pd)
 * @flags: must be 0
 * @device: in: number of the device
 * @handle: out: the protection domain
 *
 * Errors: ENODEV, EMFILE, ENOMEM.
 */
struct rpost_alloc_pd {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 handle;
};

#define RPOST_IOC_ALLOC_PD	_IO(RPOST_IOC_TYPE, RPOST_CMD_ALLOC_PD)

/**
 * enum rpost_access - access that a memory region allows
 * @RPOST_ACCESS_LOCAL_WRITE: the device may write for local work requests
 * @RPOST_ACCESS_REMOTE_WRITE: the peer may write
 * @RPOST_ACCESS_REMOTE_READ: the peer may read
 * @RPOST_ACCESS_REMOTE_ATOMIC: the peer may compare and swap, and fetch and add
 * @RPOST_ACCESS_FLUSH_GLOBAL: the peer may flush its writes, so that they are
 *     globally visible
 * @RPOST_ACCESS_FLUSH_PERSISTENT: the peer may flush its writes to persistent
 *     memory
 * @RPOST_ACCESS_ON_DEMAND: the memory is not pinned; the device waits for the
 *     pages that it needs
 * @RPOST_ACCESS_RELAXED_ORDERING: the device may reorder its accesses; a hint
 *
 * Values of enum ibv_access_flags.  Its other flags are for memory windows,
 * zero-based regions and huge pages, which the module does not offer.
 */
enum rpost_access {
	RPOST_ACCESS_LOCAL_WRITE	= 0x1,
	RPOST_ACCESS_REMOTE_WRITE	= 0x2,
	RPOST_ACCESS_REMOTE_READ	= 0x4,
	RPOST_ACCESS_REMOTE_ATOMIC	= 0x8,
	RPOST_ACCESS_ON_DEMAND		= 0x40,
	RPOST_ACCESS_FLUSH_GLOBAL	= 0x100,
	RPOST_ACCESS_FLUSH_PERSISTENT	= 0x200,
	RPOST_ACCESS_RELAXED_ORDERING	= 0x100000,
};

/* Flags of REG_MR. */
#define RPOST_MR_NO_CACHE	0x1	/* DESTROY really deregisters the region */

/**
 * struct rpost_reg_mr - ioctl(RPOST_IOC_REG_MR), ioctl(RPOST_IOC_REG_DMABUF_MR)
 * @size: sizeof(struct rpost_reg_mr)
 * @flags: RPOST_MR_NO_CACHE or 0; 0 for a dma-buf
 * @pd: in: the protection domain
 * @access: in: RPOST_ACCESS_*; remote write and atomic access need local write
 * @addr: in: first byte, in the calling process or in the dma-buf
 * @length: in: bytes, at least 1
 * @iova: in: the address by which work requests and the peer name the first
 *        byte; its offset in its page must be the same as that of @addr
 * @handle: out: the region
 * @lkey: out: key for scatter/gather entries on queue pairs of @pd
 * @rkey: out: key for the peer
 * @fd: in: the dma-buf; must be 0 for REG_MR
 *
 * REG_MR pins the memory, charges it to RLIMIT_MEMLOCK, and gives the device
 * access.  Without RPOST_ACCESS_LOCAL_WRITE the memory need only be readable.
 *
 * With RPOST_ACCESS_ON_DEMAND nothing is pinned or charged to RLIMIT_MEMLOCK,
 * and the memory need not be mapped before the device uses it.  The user is
 * charged for the kernel's list of pages.  EOPNOTSUPP unless the device reports
 * RPOST_ODP_SUPPORT; for all of a program's memory at once (@addr 0, @length
 * -1); and, where it reports RPOST_ODP_WHOLE_PAGES, if @iova is not @addr or is
 * not at the beginning of a page.  EMSGSIZE for more than the device can take.
 *
 * Errors: EFAULT for memory that is not mapped with the needed access, or, if the
 * device may write, for a shared mapping of a file whose file system has to know what
 * is written to it; ENOMEM above RLIMIT_MEMLOCK, for which also counts what processes
 * that have ended left registered in files of the same user; EPERM if it is 0 and
 * nothing is left so; EINTR if the process is killed; EOVERFLOW if @addr or @iova plus
 * @length wraps, EOPNOTSUPP for other access flags (memory windows), and for
 * RPOST_ACCESS_FLUSH_* if the kernel or the device does not support it; EINVAL
 * for RPOST_ACCESS_FLUSH_PERSISTENT on memory that is not persistent.
 *
 * Where the module registers by fast registration (see
 * Documentation/registration.rst), also EMSGSIZE for more memory than the
 * device can take, ENETDOWN if no port of the device has an address,
 * ETIMEDOUT if the device does not answer, EIO if it refuses, and EOPNOTSUPP
 * for RPOST_ACCESS_FLUSH_*.  EOPNOTSUPP if the device allows neither way of
 * registering.
 *
 * REG_DMABUF_MR does so with memory of a dma-buf, which another device may have,
 * always by fast registration.  The region keeps the dma-buf; @fd may be closed.
 * All of the dma-buf is pinned and charged, whatever @length is.  Errors are
 * those of fast registration, and: EOPNOTSUPP if the device has none or does no
 * DMA, which is found out before @fd is looked at, for access on demand, and if
 * the exporter cannot pin; EBADF if @fd is not open, or is exchanged meanwhile;
 * EINVAL if it is no dma-buf, or if @addr plus @length is beyond its end; EACCES
 * if it was not opened for reading, or for writing where the device may write;
 * ENOMEM above RLIMIT_MEMLOCK; and other errors of the exporter.
 */
struct rpost_reg_mr {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 access;
	__aligned_u64 addr;
	__aligned_u64 length;
	__aligned_u64 iova;
	__u32 handle;
	__u32 lkey;
	__u32 rkey;
	__s32 fd;
};

#define RPOST_IOC_REG_MR	_IO(RPOST_IOC_TYPE, RPOST_CMD_REG_MR)
#define RPOST_IOC_REG_DMABUF_MR	_IO(RPOST_IOC_TYPE, RPOST_CMD_REG_DMABUF_MR)

/**
 * enum rpost_advice - what a program says of its memory
 * @RPOST_ADVICE_PREFETCH: the device will read it
 * @RPOST_ADVICE_PREFETCH_WRITE: the device will write to it
 * @RPOST_ADVICE_PREFETCH_NO_FAULT: the device will use it; only pages that are
 *     present are made ready
 *
 * Values of enum ibv_advise_mr_advice.
 */
enum rpost_advice {
	RPOST_ADVICE_PREFETCH		= 0,
	RPOST_ADVICE_PREFETCH_WRITE	= 1,
	RPOST_ADVICE_PREFETCH_NO_FAULT	= 2,
};

/* Flags of ADVISE_MR, as in enum ib_uverbs_advise_mr_flag. */
#define RPOST_ADVISE_FLUSH	0x1	/* report memory that cannot be made ready */

/* Entries that ADVISE_MR takes. */
#define RPOST_MAX_ADVISE_SGE	64

/**
 * struct rpost_advise_mr - ioctl(RPOST_IOC_ADVISE_MR)
 * @size: sizeof(struct rpost_advise_mr)
 * @flags: RPOST_ADVISE_FLUSH or 0
 * @pd: in: the protection domain
 * @advice: in: RPOST_ADVICE_*
 * @sges: in: pointer to struct rpost_sge, each in a region on demand of @pd
 * @num_sge: in: how many, from 1 to RPOST_MAX_ADVISE_SGE
 * @reserved: must be 0
 *
 * Makes memory of regions on demand ready for the device.  The memory is made
 * present as if the program touched it, and the command can be killed while it
 * waits for a page.  When it returns, nothing of it is still going on.  Without
 * RPOST_ADVISE_FLUSH memory that cannot be made ready is no error.
 *
 * Errors: EFAULT for a key that is not one of a region on demand of @pd, for
 * memory outside of it, or that another process has registered, and for
 * RPOST_ADVICE_PREFETCH_WRITE without RPOST_ACCESS_LOCAL_WRITE.  With
 * RPOST_ADVISE_FLUSH, EFAULT also for memory that is not mapped as needed;
 * EOPNOTSUPP or another error of the driver's.  EINVAL for other advices and
 * numbers of entries.
 */
struct rpost_advise_mr {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 advice;
	__aligned_u64 sges;
	__u32 num_sge;
	__u32 reserved;
};

#define RPOST_IOC_ADVISE_MR	_IO(RPOST_IOC_TYPE, RPOST_CMD_ADVISE_MR)

/* ------------------------------------ completion channels and queues */

/**
 * struct rpost_create_comp_channel - ioctl(RPOST_IOC_CREATE_COMP_CHANNEL)
 * @size: sizeof(struct rpost_create_comp_channel)
 * @flags: must be 0
 * @fd: out: file descriptor of the channel, close-on-exec
 * @reserved: must be 0
 *
 * A completion channel is a file.  poll(2) reports when it is readable.
 * read(2) returns as many struct rpost_comp_event records as fit, or fewer after
 * a signal, at least one; without an event it sleeps, or fails with EAGAIN if the
 * file is O_NONBLOCK.  It fails with EINVAL if the buffer has no room for a
 * record.  An event that read(2) cannot write (EFAULT) stays.
 */
struct rpost_create_comp_channel {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

#define RPOST_IOC_CREATE_COMP_CHANNEL \
	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_COMP_CHANNEL)

/**
 * struct rpost_comp_event - record that read(2) on a completion channel returns
 * @user_data: the user_data of the completion queue that has the event
 */
struct rpost_comp_event {
	__aligned_u64 user_data;
};

/**
 * enum rpost_cq_flag - flags of struct rpost_create_cq
 * @RPOST_CQ_SMALL_ENTRIES: an entry takes RPOST_WC_SMALL_SIZE bytes instead of
 *     sizeof(struct rpost_wc)
 * @RPOST_CQ_SHARED_PAGE: the ring may share a page with other rings of this
 *     file; it begins at @ring_offset, and the rest of the mapping belongs to
 *     the other rings
 */
enum rpost_cq_flag {
	RPOST_CQ_SMALL_ENTRIES	= 0x1,
	RPOST_CQ_SHARED_PAGE	= 0x2,
};

/**
 * struct rpost_create_cq - ioctl(RPOST_IOC_CREATE_CQ)
 * @size: sizeof(struct rpost_create_cq)
 * @flags: RPOST_CQ_*
 * @device: in: number of the device
 * @cqe: in: entries wanted, at least 1; out: entries of the ring, a power of
 *       two and not fewer than wanted
 * @comp_vector: in: completion vector, below the device's num_comp_vectors
 * @channel_fd: in: completion channel, or -1
 * @user_data: in: handed back in struct rpost_comp_event
 * @mmap_offset: out: where to mmap(2) the ring on this file
 * @mmap_size: out: bytes to map, with PROT_READ | PROT_WRITE and MAP_SHARED
 * @entries_offset: out: where entry 0 begins in the ring, in bytes
 * @handle: out: the completion queue
 * @reserved: must be 0
 * @ring_offset: out: where in the mapping the ring begins, in bytes; 0 without
 *               RPOST_CQ_SHARED_PAGE
 * @reserved2: must be 0
 * @shared_page: out: number of the page that the ring shares, or 0 if it shares
 *               none.  A mapping for another ring of this file with the same
 *               number shows this ring, too.  A number is not used again.
 *
 * Completions appear in the shared ring, see struct rpost_ring.  The mapping
 * stays valid after the queue is destroyed, but the module no longer writes to
 * it; with RPOST_CQ_SHARED_PAGE it may give the memory to another queue.
 *
 * Errors: EINVAL for @cqe outside 1 to the device's max_cqe or for
 * @comp_vector, EBADF for @channel_fd, ENODEV, EMFILE, ENOMEM.
 */
struct rpost_create_cq {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 cqe;
	__u32 comp_vector;
	__s32 channel_fd;
	__aligned_u64 user_data;
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 entries_offset;
	__u32 handle;
	__u32 reserved;
	__u32 ring_offset;
	__u32 reserved2;
	__aligned_u64 shared_page;
};

#define RPOST_IOC_CREATE_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_CQ)

/**
 * struct rpost_resize_cq - ioctl(RPOST_IOC_RESIZE_CQ)
 * @size: sizeof(struct rpost_resize_cq)
 * @flags: must be 0
 * @handle: in: the completion queue
 * @cqe: in: entries wanted, at least 1; out: entries of the new ring
 * @mmap_offset: out: where to mmap(2) the new ring on this file
 * @mmap_size: out: bytes to map
 * @reserved: must be 0
 * @ring_offset: out: where in the mapping the new ring begins, in bytes
 * @reserved2: must be 0
 * @shared_page: out: number of the page that the new ring shares, or 0; see
 *               struct rpost_create_cq
 *
 * Gives the queue a new ring, with entries of the same size.  The module copies
 * the completions that have not been consumed, and the indices of the control
 * words.  It no longer writes to the old ring; with RPOST_CQ_SHARED_PAGE it may
 * give the memory to another queue.  The program must not consume from, or
 * write to, the old ring while the call runs.
 *
 * Errors: EINVAL for @cqe outside 1 to the device's max_cqe or below the number
 * of completions that have not been consumed, ENODEV, ENOMEM.
 */
struct rpost_resize_cq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 cqe;
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 reserved;
	__u32 ring_offset;
	__u32 reserved2;
	__aligned_u64 shared_page;
};

#define RPOST_IOC_RESIZE_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_RESIZE_CQ)

/**
 * struct rpost_modify_cq - ioctl(RPOST_IOC_MODIFY_CQ)
 * @size: sizeof(struct rpost_modify_cq)
 * @flags: must be 0
 * @handle: in: the completion queue
 * @count: in: completions for which an event waits; 0 or 1 for none but the first
 * @period_us: in: microseconds for which it waits at most
 * @reserved: must be 0
 *
 * Lets the device delay the queue's events, to interrupt less often: until
 * @count completions have come, or until @period_us after the first of them.
 * Both 0 is the state of a new queue.  While events are delayed, the ring always
 * says RPOST_RING_NEED_POLL, so that a program that polls waits for nothing.
 *
 * Errors: EOPNOTSUPP if the device cannot do it; EINVAL for a value above
 * @max_moderate_count or @max_moderate_us of struct rpost_query_device, and for
 * a @count above 1 with a @period_us of 0, by which an event could be delayed
 * forever; the device's own error, after which the queue is as it was; ENODEV.
 */
struct rpost_modify_cq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 count;
	__u32 period_us;
	__u32 reserved;
};

#define RPOST_IOC_MODIFY_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_MODIFY_CQ)

/**
 * enum rpost_ring_flag - flags of struct rpost_ring
 * @RPOST_RING_NEED_POLL: the device may have completions that are not in the
 *     ring; RPOST_IOC_POLL_CQ polls the device
 * @RPOST_RING_OVERRUN: a completion was lost because the ring was full; the
 *     completions before it are in the ring.  The flag stays set.  The queue's
 *     first loss is reported by RPOST_ASYNC_CQ_ERR, too
 */
enum rpost_ring_flag {
	RPOST_RING_NEED_POLL	= 0x1,
	RPOST_RING_OVERRUN	= 0x2,
};

/**
 * struct rpost_ring - the shared completion ring's control words
 * @tail: written by the kernel: entries produced so far.  Read it with acquire
 *        semantics; the entries before it are complete.
 * @flags: written by the kernel: RPOST_RING_*.  Read them with acquire
 *         semantics before @tail; then @tail covers every entry that precedes
 *         an RPOST_RING_OVERRUN.
 * @fired: written by the kernel: the last value of @arm for which the kernel
 *         has put an event into the completion channel, or is about to
 * @reserved: written by the kernel: 0
 * @head: written by the program: entries consumed so far, with release
 *        semantics.  The kernel uses it to see which entries, and so which work
 *        requests, the program has consumed.
 * @arm: written by the program: any value different from @fired asks for an
 *       event with the next completion.  After writing it, execute a full
 *       memory barrier and read @flags and @tail once more before sleeping.
 *       While RPOST_RING_NEED_POLL is set the kernel may not read the word;
 *       use RPOST_IOC_ARM_CQ.  The kernel sets and clears the flag at any
 *       time.
 * @reserved2: written by the program: 0
 *
 * Both indices wrap at 2^32; entry number i is at i modulo the number of
 * entries.  Every word has one writer.
 */
struct rpost_ring {
	__u32 tail;
	__u32 flags;
	__u32 fired;
	__u32 reserved[13];
	__u32 head;
	__u32 arm;
	__u32 reserved2[14];
};

/*
 * Values of enum ibv_wc_status.  The module passes on the device's status, so
 * other values of that enum may appear, too.
 */
#define RPOST_WC_SUCCESS		0
#define RPOST_WC_LOC_LEN_ERR		1
#define RPOST_WC_LOC_QP_OP_ERR		2
#define RPOST_WC_LOC_EEC_OP_ERR		3
#define RPOST_WC_LOC_PROT_ERR		4
#define RPOST_WC_WR_FLUSH_ERR		5
#define RPOST_WC_MW_BIND_ERR		6
#define RPOST_WC_BAD_RESP_ERR		7
#define RPOST_WC_LOC_ACCESS_ERR		8
#define RPOST_WC_REM_INV_REQ_ERR	9
#define RPOST_WC_REM_ACCESS_ERR		10
#define RPOST_WC_REM_OP_ERR		11
#define RPOST_WC_RETRY_EXC_ERR		12
#define RPOST_WC_RNR_RETRY_EXC_ERR	13
#define RPOST_WC_GENERAL_ERR		21

/* Values of enum ibv_wc_opcode; its others are of operations without a post. */
#define RPOST_WC_SEND			0
#define RPOST_WC_RDMA_WRITE		1
#define RPOST_WC_RDMA_READ		2
#define RPOST_WC_COMP_SWAP		3
#define RPOST_WC_FETCH_ADD		4
#define RPOST_WC_RECV			128
#define RPOST_WC_RECV_RDMA_WITH_IMM	129

/**
 * enum rpost_wc_flag - flags of struct rpost_wc
 * @RPOST_WC_F_GRH: the first 40 bytes received are the global routing header
 * @RPOST_WC_F_WITH_IMM: @imm_data has immediate data
 * @RPOST_WC_F_WITH_INV: @imm_data has the key that was invalidated
 *
 * Values of enum ibv_wc_flags.  Its other flags are for raw packet queue pairs
 * and tag matching, which the module does not offer.
 */
enum rpost_wc_flag {
	RPOST_WC_F_GRH		= 0x1,
	RPOST_WC_F_WITH_IMM	= 0x2,
	RPOST_WC_F_WITH_INV	= 0x8,
};

/**
 * struct rpost_wc - one completion in the ring
 * @wr_id: wr_id of the work request
 * @status: RPOST_WC_*; if it is not RPOST_WC_SUCCESS, only @wr_id, @status,
 *          @qp_num and @vendor_err are valid
 * @opcode: RPOST_WC_*
 * @vendor_err: the device's error code
 * @byte_len: bytes received, or read
 * @imm_data: immediate data as it was sent, or the key that was invalidated
 * @qp_num: local queue pair
 * @src_qp: remote queue pair (datagrams)
 * @wc_flags: RPOST_WC_F_*
 * @pkey_index: as in ibv_poll_cq(3)
 * @slid: as in ibv_poll_cq(3)
 * @sl: as in ibv_poll_cq(3)
 * @dlid_path_bits: as in ibv_poll_cq(3)
 * @vlan: id of the VLAN by which the message came, or 0 if by none, or if the
 *        device does not tell (receives)
 * @reserved: 0; an entry of RPOST_WC_SMALL_SIZE bytes ends before it
 */
struct rpost_wc {
	__aligned_u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 vendor_err;
	__u32 byte_len;
	__u32 imm_data;
	__u32 qp_num;
	__u32 src_qp;
	__u32 wc_flags;
	__u16 pkey_index;
	__u16 slid;
	__u8 sl;
	__u8 dlid_path_bits;
	__u16 vlan;
	__u8 reserved[16];
};

/* The size of an entry with RPOST_CQ_SMALL_ENTRIES. */
#define RPOST_WC_SMALL_SIZE		48

/**
 * enum rpost_arm_flag - flags of struct rpost_arm_cq
 * @RPOST_ARM_SOLICITED: only a completion of a send with the solicited flag, or
 *     one with an error, causes an event
 */
enum rpost_arm_flag {
	RPOST_ARM_SOLICITED	= 0x1,
};

/**
 * struct rpost_arm_cq - ioctl(RPOST_IOC_ARM_CQ)
 * @size: sizeof(struct rpost_arm_cq)
 * @flags: RPOST_ARM_*
 * @handle: in: the completion queue
 * @reserved: must be 0
 *
 * Asks for one event with the next completion.  A program needs this call for
 * solicited events and while RPOST_RING_NEED_POLL is set; otherwise writing
 * @arm in the ring does the same.  There may be an event too many, but never one
 * too few while a queue pair uses the queue, see RPOST_IOC_DESTROY.  Poll the
 * queue once more before sleeping.
 *
 * Errors: ENODEV: there is no event any more; the ring may still have completions.
 */
struct rpost_arm_cq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

#define RPOST_IOC_ARM_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_ARM_CQ)

/**
 * struct rpost_poll_cq - ioctl(RPOST_IOC_POLL_CQ)
 * @size: sizeof(struct rpost_poll_cq)
 * @flags: must be 0
 * @handle: in: the completion queue
 * @reserved: must be 0
 *
 * Polls the device and puts its completions into the ring, without sleeping.  Returns
 * how many entries the call put into the ring.  A program needs this call if the ring
 * has fewer entries than it wants, and RPOST_RING_NEED_POLL set; it may use it at any
 * time.
 */
struct rpost_poll_cq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

#define RPOST_IOC_POLL_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_POLL_CQ)

/* ----------------------------------------------------------- addresses */

/**
 * struct rpost_ah_attr - an address vector, see ibv_create_ah(3)
 * @dgid: GID of the other side
 * @flow_label: of the global routing header
 * @dlid: local id of the other side
 * @sgid_index: local GID by its index, see RPOST_IOC_QUERY_GIDS
 * @hop_limit: of the global routing header
 * @traffic_class: of the global routing header
 * @sl: service level
 * @src_path_bits: as in ibv_create_ah(3)
 * @static_rate: as in ibv_create_ah(3)
 * @is_global: 1 if the fields of the global routing header are valid
 * @port_num: local port
 * @reserved: must be 0
 */
struct rpost_ah_attr {
	__u8 dgid[16];
	__u32 flow_label;
	__u16 dlid;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;
	__u8 src_path_bits;
	__u8 static_rate;
	__u8 is_global;
	__u8 port_num;
	__u8 reserved[2];
};

/**
 * struct rpost_create_ah - ioctl(RPOST_IOC_CREATE_AH)
 * @size: sizeof(struct rpost_create_ah)
 * @flags: must be 0
 * @pd: in: protection domain
 * @handle: out: the address handle
 * @attr: in: the address
 * @dmac: out: on Ethernet, the link address to which datagrams go; else 0
 * @vlan: out: the VLAN of the source's GID, or 0xffff if it has none
 *
 * Once the source's GID is not one of this network namespace any more, posts that name
 * the handle fail (ENOENT).
 *
 * Errors: EINVAL for an invalid port, GID index or address; ENETUNREACH,
 * EHOSTUNREACH or EINVAL for an address without a route; ETIMEDOUT for a
 * neighbour that does not answer within a second; ENODEV, EMFILE, ENOMEM.
 */
struct rpost_create_ah {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 handle;
	struct rpost_ah_attr attr;
	__u8 dmac[6];
	__u16 vlan;
};

#define RPOST_IOC_CREATE_AH	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_AH)

/* ----------------------------------- event channels, connection ids */

/**
 * struct rpost_create_event_channel - ioctl(RPOST_IOC_CREATE_EVENT_CHANNEL)
 * @size: sizeof(struct rpost_create_event_channel)
 * @flags: must be 0
 * @fd: out: file descriptor of the channel, close-on-exec
 * @reserved: must be 0
 *
 * An event channel is a file.  poll(2) reports it readable while it has an
 * event; RPOST_IOC_GET_EVENT on it fetches one.
 */
struct rpost_create_event_channel {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

#define RPOST_IOC_CREATE_EVENT_CHANNEL \
	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_EVENT_CHANNEL)

#define RPOST_MAX_PRIVATE_DATA	256

/**
 * struct rpost_conn_param - parameters of a connection
 * @qp_num: in events, the queue pair of the other side; in commands, the
 *          queue pair of this side if the program owns it
 * @responder_resources: RDMA reads and atomics that this side will answer at
 *                       a time
 * @initiator_depth: RDMA reads and atomics that this side will have in flight
 * @flow_control: 1 if hardware flow control is available
 * @retry_count: how often the device repeats a send that is not acknowledged;
 *               above 7 counts as 7; not used when accepting
 * @rnr_retry_count: how often the device repeats a send that found no receive;
 *                   7 is for ever; above 7 counts as 7
 * @srq: in events, 1 if the other side uses a shared receive queue; in
 *       commands, 1 if this side does and the program owns the queue pair
 * @private_data_len: valid bytes in @private_data
 * @reserved: must be 0
 * @private_data: bytes for the other side; rdma_connect(3) says how many each
 *                transport carries
 */
struct rpost_conn_param {
	__u32 qp_num;
	__u8 responder_resources;
	__u8 initiator_depth;
	__u8 flow_control;
	__u8 retry_count;
	__u8 rnr_retry_count;
	__u8 srq;
	__u8 private_data_len;
	__u8 reserved[5];
	__u8 private_data[RPOST_MAX_PRIVATE_DATA];
};

/* enum rdma_cm_event_type has the same values */
#define RPOST_EVENT_ADDR_RESOLVED	0
#define RPOST_EVENT_ADDR_ERROR		1
#define RPOST_EVENT_ROUTE_RESOLVED	2
#define RPOST_EVENT_ROUTE_ERROR		3
#define RPOST_EVENT_CONNECT_REQUEST	4
#define RPOST_EVENT_CONNECT_RESPONSE	5
#define RPOST_EVENT_CONNECT_ERROR	6
#define RPOST_EVENT_UNREACHABLE		7
#define RPOST_EVENT_REJECTED		8
#define RPOST_EVENT_ESTABLISHED		9
#define RPOST_EVENT_DISCONNECTED	10
#define RPOST_EVENT_DEVICE_REMOVAL	11
#define RPOST_EVENT_MULTICAST_JOIN	12
#define RPOST_EVENT_MULTICAST_ERROR	13
#define RPOST_EVENT_ADDR_CHANGE		14
#define RPOST_EVENT_TIMEWAIT_EXIT	15
#define RPOST_EVENT_ADDRINFO_RESOLVED	16
#define RPOST_EVENT_USER		18

/**
 * struct rpost_ud_param - how to reach a datagram queue pair
 * @qp_num: queue pair of the other side; 0xffffff for a multicast group
 * @qkey: its queue key
 * @ah: its address
 */
struct rpost_ud_param {
	__u32 qp_num;
	__u32 qkey;
	struct rpost_ah_attr ah;
};

/**
 * struct rpost_ece - enhanced connection establishment options, see
 *                    rdma_set_local_ece(3)
 * @vendor_id: vendor of the device, 0 for no options
 * @attr_mod: the vendor's options
 */
struct rpost_ece {
	__u32 vendor_id;
	__u32 attr_mod;
};

/**
 * struct rpost_get_event - ioctl(RPOST_IOC_GET_EVENT), on an event channel
 * @size: sizeof(struct rpost_get_event)
 * @flags: must be 0
 * @id: out: the id that the event belongs to; for a connection request, a new
 *      id, which the program has to destroy
 * @listen_id: out: for a connection request, the id that listens; else 0
 * @event: out: RPOST_EVENT_*
 * @status: out: 0, a negative errno or the transport's reason, as in
 *          rdma_get_cm_event(3)
 * @param: out: parameters that the other side proposed or answered; valid for
 *         connection requests, established and rejected connections; on ids of
 *         RPOST_QPT_UD only its private data is valid
 * @ud: out: on ids of RPOST_QPT_UD, the destination to send to, for
 *      established connections and multicast joins
 * @ece: out: options that the other side proposed or answered
 * @user_data: out: for multicast events, the user_data of the join; for events of
 *             WRITE_EVENT, what it was given
 *
 * Fetches the oldest event.  Sleeps if there is none, unless the channel is
 * O_NONBLOCK.  If the module cannot write the struct, the event stays first.
 * The id of a request gets no events before the program accepts it; if the
 * other side or the device has gone by then, RPOST_IOC_ACCEPT fails.
 *
 * Errors: EAGAIN, EINTR (ERESTARTSYS), ENODEV once the file of /dev/rdma_post
 * that the channel belongs to has been closed, EFAULT.
 */
struct rpost_get_event {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 listen_id;
	__u32 event;
	__s32 status;
	struct rpost_conn_param param;
	struct rpost_ud_param ud;
	struct rpost_ece ece;
	__aligned_u64 user_data;
};

#define RPOST_IOC_GET_EVENT	_IO(RPOST_IOC_TYPE, RPOST_CMD_GET_EVENT)

/**
 * struct rpost_write_event - ioctl(RPOST_IOC_WRITE_EVENT)
 * @size: sizeof(struct rpost_write_event)
 * @flags: must be 0
 * @id: in: the id, of a request only after RPOST_IOC_ACCEPT
 * @event: in: RPOST_EVENT_USER or RPOST_EVENT_ADDRINFO_RESOLVED
 * @status: in: comes back as the event's @status
 * @reserved: must be 0
 * @user_data: in: comes back as the event's @user_data
 *
 * Appends an event to the channel of the id, which wakes a thread that waits
 * there.  The id does not change.
 *
 * Errors: EINVAL for another @event, or a request that is not accepted; ENOMEM
 * while eight events of the id have not been fetched.
 */
struct rpost_write_event {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 event;
	__s32 status;
	__u32 reserved;
	__aligned_u64 user_data;
};

#define RPOST_IOC_WRITE_EVENT	_IO(RPOST_IOC_TYPE, RPOST_CMD_WRITE_EVENT)

/* enum rdma_port_space has the same values */
#define RPOST_PS_IPOIB	0x0002
#define RPOST_PS_TCP	0x0106
#define RPOST_PS_UDP	0x0111
#define RPOST_PS_IB	0x013F

/* enum ibv_qp_type has the same values */
#define RPOST_QPT_RC	2
#define RPOST_QPT_UC	3
#define RPOST_QPT_UD	4

/**
 * struct rpost_create_id - ioctl(RPOST_IOC_CREATE_ID)
 * @size: sizeof(struct rpost_create_id)
 * @flags: must be 0
 * @channel_fd: in: event channel that gets the id's events
 * @port_space: in: RPOST_PS_*
 * @qp_type: in: RPOST_QPT_RC with RPOST_PS_TCP, RPOST_QPT_UD with RPOST_PS_UDP
 *           and RPOST_PS_IPOIB, any with RPOST_PS_IB
 * @handle: out: the id
 *
 * Errors: EBADF, EINVAL for a port space, a type of queue pair or a pair of
 * them that does not exist, EMFILE, ENOMEM.
 */
struct rpost_create_id {
	__u32 size;
	__u32 flags;
	__s32 channel_fd;
	__u32 port_space;
	__u32 qp_type;
	__u32 handle;
};

#define RPOST_IOC_CREATE_ID	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_ID)

/**
 * struct rpost_bind_addr - ioctl(RPOST_IOC_BIND_ADDR)
 * @size: sizeof(struct rpost_bind_addr)
 * @flags: must be 0
 * @id: in: the id, which must not be bound yet
 * @addr_len: in: valid bytes of @addr
 * @addr: in: AF_INET, AF_INET6 or AF_IB address; port 0 lets the kernel choose
 *
 * Errors: EINVAL for a bound id or a bad length, EAFNOSUPPORT, EADDRINUSE,
 * EADDRNOTAVAIL, ENODEV, EACCES for a privileged port.
 */
struct rpost_bind_addr {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 addr_len;
	struct __kernel_sockaddr_storage addr;
};

#define RPOST_IOC_BIND_ADDR	_IO(RPOST_IOC_TYPE, RPOST_CMD_BIND_ADDR)

/**
 * struct rpost_resolve_addr - ioctl(RPOST_IOC_RESOLVE_ADDR)
 * @size: sizeof(struct rpost_resolve_addr)
 * @flags: must be 0
 * @id: in: the id, idle or bound
 * @timeout_ms: in: milliseconds until the command fails, 1 to 3,600,000
 * @src_len: in: valid bytes of @src; 0 for no address, and for a bound id
 * @dst_len: in: valid bytes of @dst
 * @src: in: address to bind to
 * @dst: in: address of the other side
 *
 * Ends with RPOST_EVENT_ADDR_RESOLVED or RPOST_EVENT_ADDR_ERROR.
 *
 * Errors: as for RPOST_IOC_BIND_ADDR; ENOMEM while too many events of the id
 * have not been fetched.
 */
struct rpost_resolve_addr {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 timeout_ms;
	__u32 src_len;
	__u32 dst_len;
	struct __kernel_sockaddr_storage src;
	struct __kernel_sockaddr_storage dst;
};

#define RPOST_IOC_RESOLVE_ADDR	_IO(RPOST_IOC_TYPE, RPOST_CMD_RESOLVE_ADDR)

/**
 * struct rpost_resolve_route - ioctl(RPOST_IOC_RESOLVE_ROUTE)
 * @size: sizeof(struct rpost_resolve_route)
 * @flags: must be 0
 * @id: in: the id, with its address resolved
 * @timeout_ms: in: milliseconds until the command fails, 1 to 3,600,000
 *
 * Ends with RPOST_EVENT_ROUTE_RESOLVED or RPOST_EVENT_ROUTE_ERROR.
 *
 * Errors: EINVAL in another state, ENODEV if the module does not know the device
 * (yet), or if it is not of the file's network namespace, EADDRNOTAVAIL if the
 * namespace does not have the id's address any more, ENOMEM while too many events of the
 * id have not been fetched.
 */
struct rpost_resolve_route {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 timeout_ms;
};

#define RPOST_IOC_RESOLVE_ROUTE	_IO(RPOST_IOC_TYPE, RPOST_CMD_RESOLVE_ROUTE)

/**
 * enum rpost_id_state - state of a connection id
 * @RPOST_ID_IDLE: created
 * @RPOST_ID_BOUND: has a local address
 * @RPOST_ID_ADDR_QUERY: resolving the address
 * @RPOST_ID_ADDR_RESOLVED: has a device
 * @RPOST_ID_ROUTE_QUERY: resolving the route
 * @RPOST_ID_ROUTE_RESOLVED: ready to connect
 * @RPOST_ID_LISTEN: listening
 * @RPOST_ID_REQUEST: made by a connection request that awaits an answer
 * @RPOST_ID_CONNECTING: a connection request is under way
 * @RPOST_ID_ACCEPTING: accepted, not yet established
 * @RPOST_ID_CONNECTED: established
 * @RPOST_ID_DISCONNECTED: was connected
 * @RPOST_ID_ERROR: the connection failed, or the request was rejected
 * @RPOST_ID_REMOVED: the device has gone; the id can only be destroyed
 */
enum rpost_id_state {
	RPOST_ID_IDLE,
	RPOST_ID_BOUND,
	RPOST_ID_ADDR_QUERY,
	RPOST_ID_ADDR_RESOLVED,
	RPOST_ID_ROUTE_QUERY,
	RPOST_ID_ROUTE_RESOLVED,
	RPOST_ID_LISTEN,
	RPOST_ID_REQUEST,
	RPOST_ID_CONNECTING,
	RPOST_ID_ACCEPTING,
	RPOST_ID_CONNECTED,
	RPOST_ID_DISCONNECTED,
	RPOST_ID_ERROR,
	RPOST_ID_REMOVED,
};

/**
 * struct rpost_path - a path record, see struct ibv_path_record
 * @dgid: the other side's GID
 * @sgid: local GID
 * @dlid: local id of the other side, big endian
 * @slid: local id of this side, big endian
 * @flow_label: big endian
 * @raw_traffic: as in struct ibv_sa_path_rec
 * @reversible: as in struct ibv_sa_path_rec
 * @pkey: partition, big endian
 * @hop_limit: as in struct ibv_sa_path_rec
 * @traffic_class: as in struct ibv_sa_path_rec
 * @numb_path: as in struct ibv_sa_path_rec
 * @sl: service level
 * @mtu_selector: as in struct ibv_sa_path_rec
 * @mtu: enum ibv_mtu
 * @rate_selector: as in struct ibv_sa_path_rec
 * @rate: enum ibv_rate
 * @packet_life_time_selector: as in struct ibv_sa_path_rec
 * @packet_life_time: as in struct ibv_sa_path_rec
 * @preference: as in struct ibv_sa_path_rec
 * @reserved: 0
 */
struct rpost_path {
	__u8 dgid[16];
	__u8 sgid[16];
	__be16 dlid;
	__be16 slid;
	__be32 flow_label;
	__u32 raw_traffic;
	__u32 reversible;
	__be16 pkey;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 numb_path;
	__u8 sl;
	__u8 mtu_selector;
	__u8 mtu;
	__u8 rate_selector;
	__u8 rate;
	__u8 packet_life_time_selector;
	__u8 packet_life_time;
	__u8 preference;
	__u8 reserved[3];
};

/**
 * struct rpost_query_id - ioctl(RPOST_IOC_QUERY_ID)
 * @size: sizeof(struct rpost_query_id)
 * @flags: must be 0
 * @id: in: the id
 * @state: out: enum rpost_id_state
 * @device: out: number of the device, 0 if there is none yet
 * @port_num: out: port of the device, 0 if there is no device
 * @pkey: out: partition, big endian
 * @path_mtu: out: enum ibv_mtu of the path, 0 before the route is resolved
 * @num_paths: out: paths of the route, 0 to 2
 * @reserved: must be 0
 * @src: out: local address, family 0 if there is none
 * @dst: out: the other side's address, family 0 if there is none
 * @sgid: out: local GID
 * @dgid: out: the other side's GID
 * @paths: out: the first @num_paths entries are the paths of the route
 *
 * Tells the state, the addresses and the route of an id.
 *
 * Errors: ENODEV if RPOST_IOC_QUERY_DEVICES does not list the id's device: the
 * device is being added or removed, is not of the file's network namespace, or the module
 * does not offer it.
 */
struct rpost_query_id {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 state;
	__u32 device;
	__u32 port_num;
	__be16 pkey;
	__u8 path_mtu;
	__u8 num_paths;
	__u32 reserved;
	struct __kernel_sockaddr_storage src;
	struct __kernel_sockaddr_storage dst;
	__u8 sgid[16];
	__u8 dgid[16];
	struct rpost_path paths[2];
};

#define RPOST_IOC_QUERY_ID	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_ID)

/**
 * struct rpost_listen - ioctl(RPOST_IOC_LISTEN)
 * @size: sizeof(struct rpost_listen)
 * @flags: must be 0
 * @id: in: the id, bound, or idle to listen on a port that the kernel chooses
 * @backlog: in: requests that may wait to be fetched; 0 or above the module's
 *           maximum counts as the maximum
 *
 * Each request comes as RPOST_EVENT_CONNECT_REQUEST with a new id.  The module
 * does not answer a connection request above @backlog: the other side repeats
 * it until it gives up.  It refuses a request for the address of a datagram
 * queue pair above @backlog, and any request on a device that
 * RPOST_IOC_QUERY_DEVICES does not list.
 */
struct rpost_listen {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 backlog;
};

#define RPOST_IOC_LISTEN	_IO(RPOST_IOC_TYPE, RPOST_CMD_LISTEN)

/**
 * struct rpost_connect - ioctl(RPOST_IOC_CONNECT)
 * @size: sizeof(struct rpost_connect)
 * @flags: must be 0
 * @id: in: the id, with its route resolved
 * @reserved: must be 0
 * @param: in: @param.qp_num and @param.srq must be 0 if the id has a queue pair
 * @ece: in: options to propose
 *
 * Ends with RPOST_EVENT_ESTABLISHED, RPOST_EVENT_REJECTED,
 * RPOST_EVENT_UNREACHABLE or RPOST_EVENT_CONNECT_ERROR.
 *
 * An id without a queue pair connects the queue pair of this file that
 * @param.qp_num names.  The program brings that queue pair up with the
 * attributes from RPOST_IOC_INIT_QP_ATTR.  The id gets
 * RPOST_EVENT_CONNECT_RESPONSE, which the program answers by
 * RPOST_IOC_ESTABLISH or RPOST_IOC_REJECT.
 *
 * On an id of RPOST_QPT_UD the command asks for the address of the other
 * side's queue pair, which comes with RPOST_EVENT_ESTABLISHED.
 *
 * Errors: EINVAL in another state, for a @param.qp_num that is not one of this
 * file's queue pairs on the device, or for more private data than the transport
 * carries; EOPNOTSUPP for @param.qp_num or @param.srq with a queue pair, or for
 * an id without one on an iWARP device; EADDRNOTAVAIL if the id's address is no
 * longer one of this network namespace; ENODEV if the device is not of this
 * namespace, or is RoCE and the id has no address.
 */
struct rpost_connect {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
	struct rpost_conn_param param;
	struct rpost_ece ece;
};

#define RPOST_IOC_CONNECT	_IO(RPOST_IOC_TYPE, RPOST_CMD_CONNECT)

/**
 * struct rpost_accept - ioctl(RPOST_IOC_ACCEPT)
 * @size: sizeof(struct rpost_accept)
 * @flags: must be 0
 * @id: in: the id of the request
 * @reserved: must be 0
 * @param: in: as for RPOST_IOC_CONNECT
 * @ece: in: options to answer with
 * @qkey: in: queue key, on ids of RPOST_QPT_UD; 0 for that of the port space
 * @reserved2: must be 0
 *
 * Ends with RPOST_EVENT_ESTABLISHED or RPOST_EVENT_CONNECT_ERROR.  On an id of
 * RPOST_QPT_UD no event follows.  If the id has no queue pair, the program
 * brings up the one that @param.qp_num names before it calls.
 *
 * Errors: as for RPOST_IOC_CONNECT; EINVAL for a @qkey on another type of id;
 * EPERM for a privileged @qkey.
 */
struct rpost_accept {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
	struct rpost_conn_param param;
	struct rpost_ece ece;
	__u32 qkey;
	__u32 reserved2;
};

#define RPOST_IOC_ACCEPT	_IO(RPOST_IOC_TYPE, RPOST_CMD_ACCEPT)

/* Values of struct rpost_reject.reason, from InfiniBand's CM REJ messages */
#define RPOST_REJ_CONSUMER_DEFINED		28
#define RPOST_REJ_VENDOR_OPTION_NOT_SUPPORTED	35

/**
 * struct rpost_reject - ioctl(RPOST_IOC_REJECT)
 * @size: sizeof(struct rpost_reject)
 * @flags: must be 0
 * @id: in: the id of the request
 * @private_data_len: in: bytes of @private_data
 * @private_data: in: bytes for the other side
 * @reason: in: RPOST_REJ_*, or 0 for RPOST_REJ_CONSUMER_DEFINED
 * @reserved: must be 0
 *
 * The id remains, and the program should destroy it.  The command also answers
 * RPOST_EVENT_CONNECT_RESPONSE.
 */
struct rpost_reject {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 private_data_len;
	__u8 private_data[RPOST_MAX_PRIVATE_DATA];
	__u32 reason;
	__u32 reserved;
};

#define RPOST_IOC_REJECT	_IO(RPOST_IOC_TYPE, RPOST_CMD_REJECT)

/**
 * struct rpost_disconnect - ioctl(RPOST_IOC_DISCONNECT)
 * @size: sizeof(struct rpost_disconnect)
 * @flags: must be 0
 * @id: in: the id, connected or accepting or disconnected
 * @reserved: must be 0
 *
 * Both sides get RPOST_EVENT_DISCONNECTED, and the outstanding work requests of
 * their queue pairs are flushed.  The command also answers a disconnection by
 * the other side.
 *
 * Errors: ENOTCONN for an id that has not been connected, and for any id of
 * RPOST_QPT_UD.
 */
struct rpost_disconnect {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
};

#define RPOST_IOC_DISCONNECT	_IO(RPOST_IOC_TYPE, RPOST_CMD_DISCONNECT)

/**
 * struct rpost_migrate_id - ioctl(RPOST_IOC_MIGRATE_ID)
 * @size: sizeof(struct rpost_migrate_id)
 * @flags: must be 0
 * @id: in: the id
 * @channel_fd: in: event channel that gets the id's events from now on
 *
 * Events of the id that wait on its old channel move along, in their order.
 *
 * Errors: EBADF.
 */
struct rpost_migrate_id {
	__u32 size;
	__u32 flags;
	__u32 id;
	__s32 channel_fd;
};

#define RPOST_IOC_MIGRATE_ID	_IO(RPOST_IOC_TYPE, RPOST_CMD_MIGRATE_ID)

/* Values of struct rpost_set_option.level and .option: rdma_set_option(3) */
#define RPOST_OPTION_ID			0
#define RPOST_OPTION_IB			1
#define RPOST_OPTION_ID_TOS		0
#define RPOST_OPTION_ID_REUSEADDR	1
#define RPOST_OPTION_ID_AFONLY		2
#define RPOST_OPTION_ID_ACK_TIMEOUT	3
#define RPOST_OPTION_IB_PATH		1

/**
 * struct rpost_set_option - ioctl(RPOST_IOC_SET_OPTION)
 * @size: sizeof(struct rpost_set_option)
 * @flags: must be 0
 * @id: in: the id
 * @level: in: RPOST_OPTION_ID or RPOST_OPTION_IB
 * @option: in: RPOST_OPTION_ID_* or RPOST_OPTION_IB_*
 * @value: in: the value: 0 to 255 for RPOST_OPTION_ID_TOS, 0 to 31 for
 *         RPOST_OPTION_ID_ACK_TIMEOUT, 0 or 1 for the other options of ids; 0
 *         for RPOST_OPTION_IB_PATH
 * @data: in: user pointer to an array of struct ib_path_rec_data, see
 *        <rdma/ib_user_sa.h>, for RPOST_OPTION_IB_PATH; else 0
 * @data_len: in: bytes of the array; at most 64 records
 * @reserved: must be 0
 *
 * RPOST_OPTION_IB_PATH replaces RPOST_IOC_RESOLVE_ROUTE, and ends with
 * RPOST_EVENT_ROUTE_RESOLVED.  A program cannot set it after a resolution has
 * failed.  The module uses the first record whose flags are exactly
 * IB_PATH_GMP, IB_PATH_PRIMARY and IB_PATH_BIDIRECTIONAL.
 *
 * Errors: EINVAL for a value out of range or a state in which the option cannot
 * be set, EOPNOTSUPP for an option that is not known; for a path ENODEV if the device is
 * not of the file's network namespace, or is RoCE and the id has no address,
 * EADDRNOTAVAIL if the namespace does not have the address any more.
 */
struct rpost_set_option {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 level;
	__u32 option;
	__u32 value;
	__aligned_u64 data;
	__u32 data_len;
	__u32 reserved;
};

#define RPOST_IOC_SET_OPTION	_IO(RPOST_IOC_TYPE, RPOST_CMD_SET_OPTION)

/**
 * struct rpost_notify - ioctl(RPOST_IOC_NOTIFY)
 * @size: sizeof(struct rpost_notify)
 * @flags: must be 0
 * @id: in: the id
 * @event: in: RPOST_ASYNC_COMM_EST
 *
 * Tells the connection manager of an event on a queue pair that the program
 * owns, see rdma_notify(3).
 *
 * Errors: EINVAL for another event, or an id in a state without such events;
 * EISCONN for an id that is connected already; EOPNOTSUPP for
 * RPOST_ASYNC_PATH_MIG: ib_cm copies the alternate path without its references.
 */
struct rpost_notify {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 event;
};

#define RPOST_IOC_NOTIFY	_IO(RPOST_IOC_TYPE, RPOST_CMD_NOTIFY)

/**
 * struct rpost_establish - ioctl(RPOST_IOC_ESTABLISH)
 * @size: sizeof(struct rpost_establish)
 * @flags: must be 0
 * @id: in: the id, without a queue pair, after RPOST_EVENT_CONNECT_RESPONSE
 * @reserved: must be 0
 *
 * Completes a connection, see rdma_establish(3).  No event follows.
 *
 * Errors: EINVAL in another state.
 */
struct rpost_establish {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
};

#define RPOST_IOC_ESTABLISH	_IO(RPOST_IOC_TYPE, RPOST_CMD_ESTABLISH)

/* Values of struct rpost_join_mcast.join_flags: rdma_join_multicast_ex(3) */
#define RPOST_JOIN_FULLMEMBER		0
#define RPOST_JOIN_SENDONLY		1

/**
 * struct rpost_join_mcast - ioctl(RPOST_IOC_JOIN_MCAST)
 * @size: sizeof(struct rpost_join_mcast)
 * @flags: must be 0
 * @id: in: the id, of RPOST_QPT_UD, with a device
 * @join_flags: in: RPOST_JOIN_*
 * @addr_len: in: valid bytes of @addr
 * @reserved: must be 0
 * @addr: in: the group; AF_INET, AF_INET6 or AF_IB
 * @user_data: in: handed back in the event
 *
 * Ends with RPOST_EVENT_MULTICAST_JOIN, which has the group's address for
 * sends, or RPOST_EVENT_MULTICAST_ERROR.  The program attaches its queue pair
 * by RPOST_IOC_ATTACH_MCAST.
 *
 * Errors: EINVAL for another kind or state of id or an address that is not a
 * group's, EOPNOTSUPP for a device without multicast, ENOMEM above 64 groups,
 * ENODEV and EADDRNOTAVAIL as for RPOST_IOC_CONNECT.
 */
struct rpost_join_mcast {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 join_flags;
	__u32 addr_len;
	__u32 reserved;
	struct __kernel_sockaddr_storage addr;
	__aligned_u64 user_data;
};

#define RPOST_IOC_JOIN_MCAST	_IO(RPOST_IOC_TYPE, RPOST_CMD_JOIN_MCAST)

/**
 * struct rpost_leave_mcast - ioctl(RPOST_IOC_LEAVE_MCAST)
 * @size: sizeof(struct rpost_leave_mcast)
 * @flags: must be 0
 * @id: in: the id
 * @addr_len: in: valid bytes of @addr
 * @addr: in: the group
 *
 * Leaves a group, and drops events of the join that have not been fetched.
 *
 * Errors: ENOENT for a group that the id has not joined.
 */
struct rpost_leave_mcast {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 addr_len;
	struct __kernel_sockaddr_storage addr;
};

#define RPOST_IOC_LEAVE_MCAST	_IO(RPOST_IOC_TYPE, RPOST_CMD_LEAVE_MCAST)

/* ---------------------------------------------- shared receive queues */

/**
 * struct rpost_create_srq - ioctl(RPOST_IOC_CREATE_SRQ)
 * @size: sizeof(struct rpost_create_srq)
 * @flags: must be 0
 * @pd: in: protection domain
 * @max_wr: in: work requests, at least 1; out: at least as many
 * @max_sge: in: scatter/gather entries in each; out: the same
 * @limit: in: as for RPOST_IOC_MODIFY_SRQ
 * @user_data: in: handed back in struct rpost_async_event
 * @handle: out: the shared receive queue
 * @reserved: must be 0
 *
 * Errors: EINVAL for a count above the limits of the device or this module,
 * EOPNOTSUPP for a device without shared receive queues, ENODEV, EMFILE,
 * ENOMEM.
 */
struct rpost_create_srq {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 max_wr;
	__u32 max_sge;
	__u32 limit;
	__aligned_u64 user_data;
	__u32 handle;
	__u32 reserved;
};

#define RPOST_IOC_CREATE_SRQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_SRQ)

/**
 * enum rpost_srq_attr - @attr_mask of struct rpost_modify_srq
 * @RPOST_SRQ_MAX_WR: @max_wr
 * @RPOST_SRQ_LIMIT: @limit
 *
 * Values of enum ibv_srq_attr_mask.
 */
enum rpost_srq_attr {
	RPOST_SRQ_MAX_WR	= 0x1,
	RPOST_SRQ_LIMIT		= 0x2,
};

/**
 * struct rpost_modify_srq - ioctl(RPOST_IOC_MODIFY_SRQ)
 * @size: sizeof(struct rpost_modify_srq)
 * @flags: must be 0
 * @handle: in: the shared receive queue
 * @attr_mask: in: RPOST_SRQ_LIMIT, RPOST_SRQ_MAX_WR
 * @max_wr: in: size that the queue gets; 0 without RPOST_SRQ_MAX_WR
 * @limit: in: once fewer work requests than this remain, the event
 *         RPOST_ASYNC_SRQ_LIMIT_REACHED comes, once; 0 for never
 *
 * The queue keeps the work requests that are in it when it is resized.
 *
 * Errors: EINVAL for a limit above the queue's size, and for a size of 0, above
 * the limits of the device or this module, or below the number of work requests
 * that are in the queue; EOPNOTSUPP for RPOST_SRQ_MAX_WR, if @device_cap_flags
 * of struct rpost_query_device has not IB_UVERBS_DEVICE_SRQ_RESIZE; EMFILE;
 * ENOMEM, also if the completion queues of its queue pairs have no room for as
 * many receives.
 */
struct rpost_modify_srq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 attr_mask;
	__u32 max_wr;
	__u32 limit;
};

#define RPOST_IOC_MODIFY_SRQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_MODIFY_SRQ)

/**
 * struct rpost_query_srq - ioctl(RPOST_IOC_QUERY_SRQ)
 * @size: sizeof(struct rpost_query_srq)
 * @flags: must be 0
 * @handle: in: the shared receive queue
 * @max_wr: out: as RPOST_IOC_CREATE_SRQ returned it
 * @max_sge: out: as RPOST_IOC_CREATE_SRQ returned it
 * @limit: out: the limit, 0 if none is set or it has been reached
 */
struct rpost_query_srq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 max_wr;
	__u32 max_sge;
	__u32 limit;
};

#define RPOST_IOC_QUERY_SRQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_SRQ)

/* --------------------------------------------------------- queue pairs */

/**
 * enum rpost_qp_flag - flags of struct rpost_create_qp
 * @RPOST_QP_SIG_ALL: every work request on the send queue is signaled
 * @RPOST_QP_ANY_MEMORY: an entry with the lkey 0 stands for memory of the process
 *                       that posts, see struct rpost_sge
 */
enum rpost_qp_flag {
	RPOST_QP_SIG_ALL	= 0x1,
	RPOST_QP_ANY_MEMORY	= 0x2,
};

/**
 * struct rpost_create_qp - ioctl(RPOST_IOC_CREATE_QP)
 * @size: sizeof(struct rpost_create_qp)
 * @flags: RPOST_QP_*
 * @id: in: the id, with a device and without a queue pair; or 0
 * @pd: in: protection domain, of the id's device
 * @send_cq: in: completion queue for the send queue, of the same device
 * @recv_cq: in: completion queue for the receive queue, of the same device
 * @max_send_wr: in: work requests on the send queue; out: at least as many
 * @max_recv_wr: in: work requests on the receive queue; out: at least as many
 * @max_send_sge: in: scatter/gather entries in a send; out: the same
 * @max_recv_sge: in: scatter/gather entries in a receive; out: the same
 * @max_inline_data: in: bytes of inline data in a send; out: at least as many
 * @handle: out: the queue pair
 * @qp_num: out: its number
 * @reserved: must be 0
 * @qp_type: in: RPOST_QPT_*, or 0 for RPOST_QPT_RC
 * @srq: in: shared receive queue, of the same protection domain; or 0
 * @user_data: in: handed back in struct rpost_async_event
 *
 * With @id, the connection manager owns the queue pair.  It has to be of
 * RPOST_QPT_RC, and starts in the INIT state: it takes receives at once, and
 * sends when the connection exists.  Without @id, the program owns the queue
 * pair, which starts in the RESET state; RPOST_IOC_MODIFY_QP brings it up.
 *
 * With a shared receive queue the module ignores @max_recv_wr and
 * @max_recv_sge, and sets both to 0.
 *
 * Errors: EINVAL for a count above the limits of the device or this module, an
 * id without a device or with a queue pair, an id of another type than
 * RPOST_QPT_RC, objects of different devices, or a shared receive queue of
 * another protection domain.
 */
struct rpost_create_qp {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 pd;
	__u32 send_cq;
	__u32 recv_cq;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u32 handle;
	__u32 qp_num;
	__u32 reserved;
	__u32 qp_type;
	__u32 srq;
	__aligned_u64 user_data;
};

#define RPOST_IOC_CREATE_QP	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_QP)

/**
 * enum rpost_qp_attr_mask - fields of struct rpost_qp_attr that are valid
 * @RPOST_QP_STATE: @qp_state
 * @RPOST_QP_CUR_STATE: @cur_qp_state
 * @RPOST_QP_EN_SQD_ASYNC_NOTIFY: @en_sqd_async_notify
 * @RPOST_QP_ACCESS_FLAGS: @access
 * @RPOST_QP_PKEY_INDEX: @pkey_index
 * @RPOST_QP_PORT: @port_num
 * @RPOST_QP_QKEY: @qkey
 * @RPOST_QP_AV: @ah
 * @RPOST_QP_PATH_MTU: @path_mtu
 * @RPOST_QP_TIMEOUT: @timeout
 * @RPOST_QP_RETRY_CNT: @retry_cnt
 * @RPOST_QP_RNR_RETRY: @rnr_retry
 * @RPOST_QP_RQ_PSN: @rq_psn
 * @RPOST_QP_MAX_QP_RD_ATOMIC: @max_rd_atomic
 * @RPOST_QP_ALT_PATH: @alt_ah, @alt_pkey_index, @alt_port_num and @alt_timeout
 * @RPOST_QP_MIN_RNR_TIMER: @min_rnr_timer
 * @RPOST_QP_SQ_PSN: @sq_psn
 * @RPOST_QP_MAX_DEST_RD_ATOMIC: @max_dest_rd_atomic
 * @RPOST_QP_PATH_MIG_STATE: @path_mig_state
 * @RPOST_QP_DEST_QPN: @dest_qp_num
 * @RPOST_QP_RATE_LIMIT: @rate_limit
 *
 * Values of enum ibv_qp_attr_mask.  IBV_QP_CAP, 0x80000, is missing, since a
 * queue pair keeps its size.  The bits from 0x200000 to 0x1000000 are reserved
 * for the kernel.
 */
enum rpost_qp_attr_mask {
	RPOST_QP_STATE			= 0x000001,
	RPOST_QP_CUR_STATE		= 0x000002,
	RPOST_QP_EN_SQD_ASYNC_NOTIFY	= 0x000004,
	RPOST_QP_ACCESS_FLAGS		= 0x000008,
	RPOST_QP_PKEY_INDEX		= 0x000010,
	RPOST_QP_PORT			= 0x000020,
	RPOST_QP_QKEY			= 0x000040,
	RPOST_QP_AV			= 0x000080,
	RPOST_QP_PATH_MTU		= 0x000100,
	RPOST_QP_TIMEOUT		= 0x000200,
	RPOST_QP_RETRY_CNT		= 0x000400,
	RPOST_QP_RNR_RETRY		= 0x000800,
	RPOST_QP_RQ_PSN			= 0x001000,
	RPOST_QP_MAX_QP_RD_ATOMIC	= 0x002000,
	RPOST_QP_ALT_PATH		= 0x004000,
	RPOST_QP_MIN_RNR_TIMER		= 0x008000,
	RPOST_QP_SQ_PSN			= 0x010000,
	RPOST_QP_MAX_DEST_RD_ATOMIC	= 0x020000,
	RPOST_QP_PATH_MIG_STATE		= 0x040000,
	RPOST_QP_DEST_QPN		= 0x100000,
	RPOST_QP_RATE_LIMIT		= 0x2000000,
};

/* enum ibv_qp_state has the same values */
#define RPOST_QPS_RESET		0
#define RPOST_QPS_INIT		1
#define RPOST_QPS_RTR		2
#define RPOST_QPS_RTS		3
#define RPOST_QPS_SQD		4
#define RPOST_QPS_SQE		5
#define RPOST_QPS_ERR		6

/**
 * struct rpost_qp_attr - attributes of a queue pair, see ibv_modify_qp(3)
 * @attr_mask: RPOST_QP_* of the valid fields
 * @qp_state: RPOST_QPS_*
 * @cur_qp_state: RPOST_QPS_* that the queue pair must be in
 * @path_mtu: enum ibv_mtu
 * @path_mig_state: enum ibv_mig_state
 * @qkey: queue key (datagrams)
 * @rq_psn: first packet number expected
 * @sq_psn: first packet number sent
 * @dest_qp_num: queue pair of the other side
 * @access: RPOST_ACCESS_* granted to the other side; a right to flush has no effect
 *          if the kernel has none (before 6.2)
 * @rate_limit: as in ibv_modify_qp_rate_limit(3)
 * @pkey_index: index of the P_Key
 * @alt_pkey_index: for the alternate path
 * @ah: path to the other side
 * @alt_ah: alternate path
 * @en_sqd_async_notify: as in ibv_modify_qp(3)
 * @sq_draining: as in ibv_query_qp(3)
 * @max_rd_atomic: RDMA reads and atomics that this side has in flight
 * @max_dest_rd_atomic: RDMA reads and atomics of the other side in flight
 * @min_rnr_timer: as in ibv_modify_qp(3)
 * @port_num: local port
 * @timeout: local ACK timeout: 4.096 us times two to this power
 * @retry_cnt: as in ibv_modify_qp(3)
 * @rnr_retry: as in ibv_modify_qp(3)
 * @alt_port_num: for the alternate path
 * @alt_timeout: for the alternate path
 * @reserved: must be 0
 */
struct rpost_qp_attr {
	__u32 attr_mask;
	__u32 qp_state;
	__u32 cur_qp_state;
	__u32 path_mtu;
	__u32 path_mig_state;
	__u32 qkey;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 dest_qp_num;
	__u32 access;
	__u32 rate_limit;
	__u16 pkey_index;
	__u16 alt_pkey_index;
	struct rpost_ah_attr ah;
	struct rpost_ah_attr alt_ah;
	__u8 en_sqd_async_notify;
	__u8 sq_draining;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 port_num;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 alt_port_num;
	__u8 alt_timeout;
	__u8 reserved[5];
};

/**
 * struct rpost_modify_qp - ioctl(RPOST_IOC_MODIFY_QP)
 * @size: sizeof(struct rpost_modify_qp)
 * @flags: must be 0
 * @handle: in: the queue pair
 * @reserved: must be 0
 * @attr: in: the attributes to change
 *
 * Works as ibv_modify_qp(3).  A move to the RESET state discards all work
 * requests of the queue pair without completions, and without events, as
 * RPOST_IOC_DESTROY does, until it leaves RESET.  The connection manager brings
 * up the queue pair of an id, and gives it its paths.  The program can move it to
 * the error state, from RTS to SQD and back, and once the connection was
 * established to RESET; from there on it moves it as any other, until the end of
 * the connection moves it to the error state.
 *
 * The module moves a queue pair to the error state when the source's GID of a path is not
 * one of this network namespace any more.
 *
 * Errors: EINVAL for a transition or an attribute that its state does not
 * allow, EPERM for a privileged queue key, EOPNOTSUPP for an unknown attribute;
 * for a path as RPOST_IOC_CREATE_AH.
 */
struct rpost_modify_qp {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
	struct rpost_qp_attr attr;
};

#define RPOST_IOC_MODIFY_QP	_IO(RPOST_IOC_TYPE, RPOST_CMD_MODIFY_QP)

/**
 * struct rpost_init_qp_attr - ioctl(RPOST_IOC_INIT_QP_ATTR)
 * @size: sizeof(struct rpost_init_qp_attr)
 * @flags: must be 0
 * @id: in: the id
 * @reserved: must be 0
 * @attr: in: @attr.qp_state; out: the attributes that bring a queue pair that
 *        the program owns into this state, for the id's connection
 *
 * See rdma_init_qp_attr(3).
 *
 * Errors: EINVAL for a state that the connection is not ready for.
 */
struct rpost_init_qp_attr {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
	struct rpost_qp_attr attr;
};

#define RPOST_IOC_INIT_QP_ATTR	_IO(RPOST_IOC_TYPE, RPOST_CMD_INIT_QP_ATTR)

/**
 * struct rpost_attach_mcast - ioctl(RPOST_IOC_ATTACH_MCAST),
 *			       ioctl(RPOST_IOC_DETACH_MCAST)
 * @size: sizeof(struct rpost_attach_mcast)
 * @flags: must be 0
 * @qp: in: the queue pair, of RPOST_QPT_UD
 * @lid: in: local id of the group
 * @gid: in: GID of the group
 *
 * See ibv_attach_mcast(3).  To attach a group again changes nothing.
 *
 * Errors: EINVAL for another type of queue pair, a GID or local id that is not
 * a group's, or a group that is not attached; ENOMEM above 64 groups.
 */
struct rpost_attach_mcast {
	__u32 size;
	__u32 flags;
	__u32 qp;
	__u32 lid;
	__u8 gid[16];
};

#define RPOST_IOC_ATTACH_MCAST	_IO(RPOST_IOC_TYPE, RPOST_CMD_ATTACH_MCAST)
#define RPOST_IOC_DETACH_MCAST	_IO(RPOST_IOC_TYPE, RPOST_CMD_DETACH_MCAST)

/**
 * struct rpost_query_qp - ioctl(RPOST_IOC_QUERY_QP)
 * @size: sizeof(struct rpost_query_qp)
 * @flags: must be 0
 * @handle: in: the queue pair
 * @qp_type: out: RPOST_QPT_*
 * @qp_flags: out: the flags that the queue pair was made with
 * @srq: out: shared receive queue, or 0
 * @max_send_wr: out: as the queue pair was made
 * @max_recv_wr: out: as the queue pair was made
 * @max_send_sge: out: as the queue pair was made
 * @max_recv_sge: out: as the queue pair was made
 * @max_inline_data: out: as the queue pair was made
 * @reserved: out: 0
 * @attr: out: all attributes
 *
 * Errors: ENODEV.
 */
struct rpost_query_qp {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 qp_type;
	__u32 qp_flags;
	__u32 srq;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u32 reserved;
	struct rpost_qp_attr attr;
};

#define RPOST_IOC_QUERY_QP	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_QP)

/**
 * enum rpost_wrs - operations that are counted apart
 * @RPOST_WRS_SEND: sends
 * @RPOST_WRS_RDMA_WRITE: writes
 * @RPOST_WRS_RDMA_READ: reads
 * @RPOST_WRS_ATOMIC: atomic operations
 * @RPOST_WRS_RECV: receives, also those that a write with immediate data has taken
 * @RPOST_NUM_WRS: number of them
 */
enum rpost_wrs {
	RPOST_WRS_SEND		= 0,
	RPOST_WRS_RDMA_WRITE	= 1,
	RPOST_WRS_RDMA_READ	= 2,
	RPOST_WRS_ATOMIC	= 3,
	RPOST_WRS_RECV		= 4,
	RPOST_NUM_WRS		= 5,
};

/**
 * struct rpost_wrs_count - work requests that have completed
 * @succeeded: with RPOST_WC_SUCCESS, signaled or not
 * @failed: with another status
 */
struct rpost_wrs_count {
	__aligned_u64 succeeded;
	__aligned_u64 failed;
};

/**
 * enum rpost_count_wrs_flag - flags of struct rpost_count_wrs
 * @RPOST_COUNT_WRS_START: begin to count; in RESET or INIT only, also if the queue pair
 *                         counts already
 */
enum rpost_count_wrs_flag {
	RPOST_COUNT_WRS_START	= 1 << 0,
};

/**
 * struct rpost_count_wrs - ioctl(RPOST_IOC_COUNT_WRS)
 * @size: sizeof(struct rpost_count_wrs)
 * @flags: RPOST_COUNT_WRS_*
 * @handle: in: the queue pair
 * @reserved: must be 0
 * @counts: out: its completed work requests, by enum rpost_wrs
 *
 * Counts work requests that have completed, also those whose completions the program has
 * not polled or does not get.  Polls the device first, unless that was removed, for all that
 * it has, and puts completions into the rings.  A ring may overrun; the counts lose nothing.
 * They begin with 0 and never decrease; what a move to RESET drops is not counted.  The call
 * waits while the queue pair is drained.
 *
 * From the start on the device signals each send, which costs time; the program gets no
 * more completions than before.
 *
 * Errors: EINVAL if the queue pair does not count; with RPOST_COUNT_WRS_START EINVAL if it
 * is neither in RESET nor in INIT, ENODEV, or an error of the driver's.
 */
struct rpost_count_wrs {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
	struct rpost_wrs_count counts[RPOST_NUM_WRS];
};

#define RPOST_IOC_COUNT_WRS	_IO(RPOST_IOC_TYPE, RPOST_CMD_COUNT_WRS)

/* --------------------------------------------------------------- posts */

/**
 * struct rpost_sge - one scatter/gather entry
 * @addr: first byte, counted from the memory region's iova
 * @length: bytes
 * @lkey: lkey of a memory region in the queue pair's protection domain
 *
 * The module ignores the key of an entry of 0 bytes.
 *
 * On a queue pair with RPOST_QP_ANY_MEMORY the @lkey 0 stands for memory of the
 * calling process at the address @addr, which needs no region.  Elsewhere 0 is a
 * bad key.
 */
struct rpost_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* enum ibv_wr_opcode has the same values */
#define RPOST_WR_RDMA_WRITE		0
#define RPOST_WR_RDMA_WRITE_WITH_IMM	1
#define RPOST_WR_SEND			2
#define RPOST_WR_SEND_WITH_IMM		3
#define RPOST_WR_RDMA_READ		4
#define RPOST_WR_ATOMIC_CMP_AND_SWP	5
#define RPOST_WR_ATOMIC_FETCH_AND_ADD	6
#define RPOST_WR_SEND_WITH_INV		9

/**
 * enum rpost_send_flag - flags of struct rpost_send_wr
 * @RPOST_SEND_FENCE: the work request starts when earlier reads and atomic
 *     operations have ended
 * @RPOST_SEND_SIGNALED: the work request has a completion also if it succeeds
 * @RPOST_SEND_SOLICITED: the peer's completion is a solicited one
 * @RPOST_SEND_INLINE: the data follows the work request
 *
 * Values of enum ibv_send_flags.
 */
enum rpost_send_flag {
	RPOST_SEND_FENCE	= 0x1,
	RPOST_SEND_SIGNALED	= 0x2,
	RPOST_SEND_SOLICITED	= 0x4,
	RPOST_SEND_INLINE	= 0x8,
};

/**
 * struct rpost_send_wr - one work request for a send queue
 * @wr_id: handed back in the completion
 * @size: bytes from here to the next work request: this struct with its entries
 *        or data, rounded up to a multiple of 8
 * @opcode: RPOST_WR_*
 * @send_flags: RPOST_SEND_*
 * @num_sge: entries of struct rpost_sge that follow this struct; 0 with
 *           RPOST_SEND_INLINE
 * @inline_len: bytes of data that follow this struct; 0 without
 *              RPOST_SEND_INLINE
 * @imm_data: immediate data, big endian, passed on unchanged
 * @rkey: key of the remote region (RDMA and atomics), or the key to invalidate
 *        (RPOST_WR_SEND_WITH_INV)
 * @reserved: must be 0
 * @remote_addr: address in the remote region; a multiple of 8 for atomics
 * @compare_add: value to compare with, or to add
 * @swap: value to store
 * @ah: on queue pairs of RPOST_QPT_UD: address handle, of the same protection
 *      domain
 * @remote_qpn: on queue pairs of RPOST_QPT_UD: queue pair of the other side
 * @remote_qkey: on queue pairs of RPOST_QPT_UD: its queue key
 *
 * Sends and RDMA writes may have inline data.  An atomic has one entry of 8
 * bytes, which receives the former value.
 */
struct rpost_send_wr {
	__aligned_u64 wr_id;
	__u32 size;
	__u32 opcode;
	__u32 send_flags;
	__u32 num_sge;
	__u32 inline_len;
	__be32 imm_data;
	__u32 rkey;
	__u32 reserved;
	union {
		__aligned_u64 remote_addr;
		__u32 ah;
	};
	union {
		__aligned_u64 compare_add;
		__u32 remote_qpn;
	};
	union {
		__aligned_u64 swap;
		__u32 remote_qkey;
	};
};

/**
 * struct rpost_recv_wr - one work request for a receive queue
 * @wr_id: handed back in the completion
 * @size: bytes from here to the next work request
 * @num_sge: entries of struct rpost_sge that follow
 */
struct rpost_recv_wr {
	__aligned_u64 wr_id;
	__u32 size;
	__u32 num_sge;
};

/**
 * struct rpost_post - ioctl(RPOST_IOC_POST_SEND), ioctl(RPOST_IOC_POST_RECV),
 *		       ioctl(RPOST_IOC_POST_SRQ_RECV)
 * @size: bytes of this struct and the work requests that follow it, which are at
 *        least one, and have at most max_wr_bytes of struct rpost_query
 * @flags: must be 0
 * @qp: in: the queue pair, or the shared receive queue
 * @reserved: must be 0
 *
 * A work request is a struct rpost_send_wr, or a struct rpost_recv_wr, followed by its
 * entries or data.  Returns how many were posted, in their order.  The first one that
 * the module refuses ends the call: with its error if it is the first of all.  To learn
 * the error of another, post again from there on.  A signal during the wait for the rate
 * of a policy ends the call as well.  When the call returns, the module has copied all
 * that it has posted, inline data included.  This struct will not grow.
 *
 * If no live memory region of the queue pair's protection domain has the key,
 * the range and the access that a scatter/gather entry needs, the post does not
 * fail: the work request completes with RPOST_WC_LOC_PROT_ERR, and the queue
 * pair goes to the error state, as in verbs.  Sends in the error state complete
 * with RPOST_WC_WR_FLUSH_ERR.  The last entry of a receive may be longer than the
 * rest of its region, which then is its length.
 *
 * With RPOST_QP_ANY_MEMORY, the data of a send or write all of whose entries have
 * the lkey 0 is copied if it is not longer than max_inline_data.  Other memory
 * with that key is pinned until the work request has completed; one without a
 * completion of its own completes with a later one, or with the queue pair.
 * Such a post may wait for the program's pages.
 *
 * Errors: for sends, EINVAL for a queue pair that is not connected yet; for
 * receives, EINVAL for a queue pair that is in the RESET state or has a shared
 * receive queue; EINVAL for more entries or data than the queue takes, an opcode
 * that the queue pair's type does not have, or sizes that do not add up to
 * @size; EOPNOTSUPP for an unknown opcode or flag; ENOENT for an address handle
 * of another protection domain, or one that has lost its source's GID; ENOMEM when
 * the queue is full; ENOBUFS without memory for the copy.  For entries with the
 * lkey 0, with RPOST_QP_ANY_MEMORY:
 * EFAULT if there is no memory, or the process may not use it so; EOVERFLOW for a
 * range that wraps; EINVAL for more than 2 GiB; ENOBUFS at the limit of locked
 * memory, the user's limit, or the limit of the rdma cgroup; EINTR if the process
 * is killed; ENODEV.
 */
struct rpost_post {
	__u32 size;
	__u32 flags;
	__u32 qp;
	__u32 reserved;
};

#define RPOST_IOC_POST_SEND	_IO(RPOST_IOC_TYPE, RPOST_CMD_POST_SEND)
#define RPOST_IOC_POST_RECV	_IO(RPOST_IOC_TYPE, RPOST_CMD_POST_RECV)
#define RPOST_IOC_POST_SRQ_RECV	_IO(RPOST_IOC_TYPE, RPOST_CMD_POST_SRQ_RECV)

#endif /* _UAPI_RDMA_POST_ABI_H */
