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
 * it was compiled with.  A shorter struct than the command's first version is
 * refused, a longer one (up to 64 KiB) is accepted as long as what the kernel
 * does not know is zero, and a kernel that knows more than the program assumes zero for the
 * rest.  Output fields are written back as far as the program's @size goes.
 * An ioctl that fails changes nothing, except where its description says
 * otherwise.
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
 *               absurd
 * EOPNOTSUPP    an unknown flag or opcode, a reserved field that is not zero,
 *               or something that the device cannot do
 * ENOENT        a handle that names no object of the right type in this file
 * EOVERFLOW     an address or length computation wraps around
 * ENOTCONN      the operation needs a connection
 * EBUSY         the object is in use by others
 * ENOMEM        out of memory, or the queue is full
 * EMFILE        this file's limit of objects has been reached
 * ENODEV        the device has been removed, or there is none such
 * EBADF         a file descriptor is not one of this file's channels
 * EFAULT        a pointer does not name readable (writable) memory
 * EPERM/EACCES  a privileged port, or a memory access that is not allowed
 * ============  ============================================================
 */

/** The version of this interface.  It changes only when programs would break. */
#define RPOST_ABI_VERSION	1

#define RPOST_DEVICE_PATH	"/dev/rdma_post"

#define RPOST_IOC_TYPE		0xBD

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
	RPOST_CMD_GET_EVENT		= 0x40,
};

/* ------------------------------------------------------------ the file */

/**
 * struct rpost_query - ioctl(RPOST_IOC_QUERY)
 * @size: sizeof(struct rpost_query)
 * @flags: must be 0
 * @abi_version: out: RPOST_ABI_VERSION of the module
 * @num_devices: out: RDMA devices that this file can see
 * @features: out: optional features, none defined yet
 * @max_wr_bytes: out: longest block of work requests that a post takes
 * @num_objects: out: objects that live in this file
 *
 * Tells a program what it talks to.
 */
struct rpost_query {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 num_devices;
	__aligned_u64 features;
	__u32 max_wr_bytes;
	__u32 num_objects;
};

#define RPOST_IOC_QUERY		_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY)

/**
 * enum rpost_obj_type - what a handle stands for
 * @RPOST_OBJ_PD: protection domain
 * @RPOST_OBJ_MR: memory region
 * @RPOST_OBJ_CQ: completion queue
 * @RPOST_OBJ_QP: queue pair
 * @RPOST_OBJ_ID: connection id
 */
enum rpost_obj_type {
	RPOST_OBJ_PD = 1,
	RPOST_OBJ_MR,
	RPOST_OBJ_CQ,
	RPOST_OBJ_QP,
	RPOST_OBJ_ID,
};

/**
 * struct rpost_destroy - ioctl(RPOST_IOC_DESTROY)
 * @size: sizeof(struct rpost_destroy)
 * @flags: must be 0
 * @type: enum rpost_obj_type of the object
 * @handle: the object
 *
 * Destroys one object.  A queue pair is moved to the error state and drained
 * first: the completions of what it still held are in its completion queues
 * when the call returns.  A connection is closed, and events of the id that
 * nobody fetched are dropped.  Channels are file descriptors and end with
 * close(2).
 *
 * Errors: EBUSY if others depend on the object: regions and queue pairs on a
 * protection domain, queue pairs on a completion queue or an id.  ENOENT if
 * @handle is not an object of @type.
 */
struct rpost_destroy {
	__u32 size;
	__u32 flags;
	__u32 type;
	__u32 handle;
};

#define RPOST_IOC_DESTROY	_IO(RPOST_IOC_TYPE, RPOST_CMD_DESTROY)

/* ------------------------------------------------------------- devices */

/**
 * struct rpost_query_devices - ioctl(RPOST_IOC_QUERY_DEVICES)
 * @size: sizeof(struct rpost_query_devices)
 * @flags: must be 0
 * @devices: user pointer to an array of __u32, may be 0 if @count is
 * @count: in: room in the array; out: number of devices there are, which may
 *         be more than there was room for
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

/**
 * struct rpost_query_device - ioctl(RPOST_IOC_QUERY_DEVICE)
 * @size: sizeof(struct rpost_query_device)
 * @flags: must be 0
 * @device: in: number of the device
 * @phys_port_cnt: out: number of ports, counted from 1
 * @name: out: name of the device, with a terminating NUL
 * @node_guid: out: big endian
 * @sys_image_guid: out: big endian
 * @node_type: out: RPOST_NODE_*
 * @transport: out: RPOST_TRANSPORT_*
 * @fw_ver: out: firmware version, as in struct ib_device_attr
 * @max_mr_size: out: bytes in the largest region
 * @page_size_cap: out: bit mask of page sizes
 * @device_cap_flags: out: IB_UVERBS_DEVICE_* as in <rdma/ib_user_verbs.h>
 * @vendor_id: out: as in ibv_query_device(3)
 * @vendor_part_id: out: as in ibv_query_device(3)
 * @hw_ver: out: as in ibv_query_device(3)
 * @max_qp: out: queue pairs
 * @max_qp_wr: out: work requests on a queue, as far as this module goes
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

/* enum ibv_access_flags has the same values */
#define RPOST_ACCESS_LOCAL_WRITE	0x1
#define RPOST_ACCESS_REMOTE_WRITE	0x2
#define RPOST_ACCESS_REMOTE_READ	0x4
#define RPOST_ACCESS_REMOTE_ATOMIC	0x8
#define RPOST_ACCESS_RELAXED_ORDERING	0x100000

/**
 * struct rpost_reg_mr - ioctl(RPOST_IOC_REG_MR)
 * @size: sizeof(struct rpost_reg_mr)
 * @flags: must be 0
 * @pd: in: the protection domain
 * @access: in: RPOST_ACCESS_*; remote write and atomic access need local write
 * @addr: in: first byte, in the calling process
 * @length: in: bytes, at least 1
 * @iova: in: the address by which work requests and the peer name the first
 *        byte; in its page, the offset must be that of @addr
 * @handle: out: the region
 * @lkey: out: key for scatter/gather entries on queue pairs of @pd
 * @rkey: out: key for the peer
 * @reserved: must be 0
 *
 * Pins the memory, charges it to RLIMIT_MEMLOCK, and gives the device access.
 * Without RPOST_ACCESS_LOCAL_WRITE the memory need only be readable.
 *
 * Errors: EFAULT for memory that is not mapped with the needed access, ENOMEM
 * above RLIMIT_MEMLOCK, EPERM if that is 0, EOVERFLOW if @addr or @iova plus @length wraps,
 * EOPNOTSUPP for other access flags (on-demand paging, memory windows).
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
	__u32 reserved;
};

#define RPOST_IOC_REG_MR	_IO(RPOST_IOC_TYPE, RPOST_CMD_REG_MR)

/* ------------------------------------ completion channels and queues */

/**
 * struct rpost_create_comp_channel - ioctl(RPOST_IOC_CREATE_COMP_CHANNEL)
 * @size: sizeof(struct rpost_create_comp_channel)
 * @flags: must be 0
 * @fd: out: file descriptor of the channel, close-on-exec
 * @reserved: must be 0
 *
 * A completion channel is a file: poll(2) says when it is readable, read(2)
 * returns struct rpost_comp_event records, as many as fit, at least one; it
 * sleeps for the first unless the file is O_NONBLOCK (EAGAIN).  A buffer with
 * room for none is EINVAL.
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
 * struct rpost_comp_event - what read(2) returns on a completion channel
 * @user_data: of the completion queue that has the event
 */
struct rpost_comp_event {
	__aligned_u64 user_data;
};

/**
 * struct rpost_create_cq - ioctl(RPOST_IOC_CREATE_CQ)
 * @size: sizeof(struct rpost_create_cq)
 * @flags: must be 0
 * @device: in: number of the device
 * @cqe: in: entries wanted, at least 1; out: entries that there are, a power
 *       of two and not fewer than wanted
 * @comp_vector: in: completion vector, below the device's num_comp_vectors
 * @channel_fd: in: completion channel, or -1
 * @user_data: in: handed back in struct rpost_comp_event
 * @mmap_offset: out: where to mmap(2) the ring on this file
 * @mmap_size: out: bytes to map, with PROT_READ | PROT_WRITE and MAP_SHARED
 * @entries_offset: out: where in the mapping entry 0 begins
 * @handle: out: the completion queue
 * @reserved: must be 0
 *
 * Completions appear in the shared ring, see struct rpost_ring.  The mapping
 * stays valid after the queue is destroyed; it just no longer changes.
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
};

#define RPOST_IOC_CREATE_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_CQ)

/* struct rpost_ring.flags, written by the kernel */
/* an empty ring tells nothing: RPOST_IOC_POLL_CQ fetches from the device */
#define RPOST_RING_NEED_POLL	0x1
/* a completion was lost because the ring was full; stays set */
#define RPOST_RING_OVERRUN	0x2

/**
 * struct rpost_ring - the shared completion ring's control words
 * @tail: written by the kernel: entries produced so far.  Read with acquire
 *        semantics; entries before it are complete.
 * @flags: written by the kernel: RPOST_RING_*
 * @fired: written by the kernel: the last value of @arm that has been answered
 *         with an event on the completion channel
 * @reserved: written by the kernel: 0
 * @head: written by the program: entries consumed so far, with release
 *        semantics.  The kernel uses it for nothing but to see that the ring
 *        is full.
 * @arm: written by the program: any value different from @fired asks for an
 *       event with the next completion.  After writing it, execute a full
 *       memory barrier and look at @tail once more before sleeping.  While
 *       RPOST_RING_NEED_POLL is set the word is not looked at, and
 *       RPOST_IOC_ARM_CQ does the work.
 * @reserved2: written by the program: 0
 *
 * Both indices count freely; entry number i is at i modulo the number of
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

/* enum ibv_wc_status has the same values; so have the opcodes and flags */
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

#define RPOST_WC_SEND			0
#define RPOST_WC_RDMA_WRITE		1
#define RPOST_WC_RDMA_READ		2
#define RPOST_WC_COMP_SWAP		3
#define RPOST_WC_FETCH_ADD		4
#define RPOST_WC_RECV			128
#define RPOST_WC_RECV_RDMA_WITH_IMM	129

#define RPOST_WC_F_GRH			0x1
#define RPOST_WC_F_WITH_IMM		0x2
#define RPOST_WC_F_WITH_INV		0x8

/**
 * struct rpost_wc - one completion in the ring
 * @wr_id: of the work request
 * @status: RPOST_WC_*; if it is not RPOST_WC_SUCCESS, only @wr_id, @status,
 *          @qp_num and @vendor_err are valid
 * @opcode: RPOST_WC_*
 * @vendor_err: of the device
 * @byte_len: bytes received, or read
 * @imm_data: immediate data as it was sent, or the key that was invalidated
 * @qp_num: local queue pair
 * @src_qp: remote queue pair (datagrams)
 * @wc_flags: RPOST_WC_F_*
 * @pkey_index: as in ibv_poll_cq(3)
 * @slid: as in ibv_poll_cq(3)
 * @sl: as in ibv_poll_cq(3)
 * @dlid_path_bits: as in ibv_poll_cq(3)
 * @reserved: 0
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
	__u8 reserved[18];
};

#define RPOST_ARM_SOLICITED	0x1

/**
 * struct rpost_arm_cq - ioctl(RPOST_IOC_ARM_CQ)
 * @size: sizeof(struct rpost_arm_cq)
 * @flags: RPOST_ARM_SOLICITED: only completions of sends with the solicited
 *         flag and errors are worth an event
 * @handle: in: the completion queue
 * @reserved: must be 0
 *
 * Asks for one event with the next completion.  Needed for solicited events
 * and while RPOST_RING_NEED_POLL is set; else writing @arm in the ring does
 * the same.  After the first use with RPOST_ARM_SOLICITED the ring keeps
 * RPOST_RING_NEED_POLL set.  An event may come that is not due; one that is
 * due always comes.  Look at the queue once more before sleeping.
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
 * @count: out: entries that the call put into the ring
 *
 * Fetches completions from the device into the ring, without sleeping.
 * Needed if the ring is empty and has RPOST_RING_NEED_POLL set, else allowed.
 */
struct rpost_poll_cq {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 count;
};

#define RPOST_IOC_POLL_CQ	_IO(RPOST_IOC_TYPE, RPOST_CMD_POLL_CQ)

/* ----------------------------------- event channels, connection ids */

/**
 * struct rpost_create_event_channel - ioctl(RPOST_IOC_CREATE_EVENT_CHANNEL)
 * @size: sizeof(struct rpost_create_event_channel)
 * @flags: must be 0
 * @fd: out: file descriptor of the channel, close-on-exec
 * @reserved: must be 0
 *
 * An event channel is a file that poll(2) reports readable while an event
 * waits; RPOST_IOC_GET_EVENT on it fetches one.
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
 * @qp_num: queue pair of the other side (in events)
 * @responder_resources: RDMA reads and atomics that this side will answer at
 *                       a time
 * @initiator_depth: RDMA reads and atomics that this side will have in flight
 * @flow_control: 1 if hardware flow control is available
 * @retry_count: sends that are not acknowledged are repeated so often; above
 *               7 counts as 7; not used when accepting
 * @rnr_retry_count: sends that found no receive are repeated so often; 7 is
 *                   for ever; above 7 counts as 7
 * @srq: the other side uses a shared receive queue (in events)
 * @private_data_len: valid bytes in @private_data
 * @reserved: must be 0
 * @private_data: bytes for the other side; how many a transport carries is in
 *                rdma_connect(3)
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

/**
 * struct rpost_get_event - ioctl(RPOST_IOC_GET_EVENT), on an event channel
 * @size: sizeof(struct rpost_get_event)
 * @flags: must be 0
 * @id: out: the id that the event belongs to; for a connection request, a new
 *      one, which the program owns from then on
 * @listen_id: out: for a connection request, the id that listens; else 0
 * @event: out: RPOST_EVENT_*
 * @status: out: as in rdma_get_cm_event(3), 0 or a negative errno or a
 *          transport's reason
 * @param: out: parameters that the other side proposed or answered; valid for
 *         connection requests, established and rejected connections
 *
 * Fetches the oldest event.  Sleeps if there is none, unless the channel is
 * O_NONBLOCK.  If the struct cannot be written the event stays where it is.
 *
 * Errors: EAGAIN, EINTR (ERESTARTSYS), ENODEV after the device file that the
 * channel was made by has been closed, EFAULT.
 */
struct rpost_get_event {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 listen_id;
	__u32 event;
	__s32 status;
	struct rpost_conn_param param;
};

#define RPOST_IOC_GET_EVENT	_IO(RPOST_IOC_TYPE, RPOST_CMD_GET_EVENT)

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
 * @port_space: in: RPOST_PS_TCP or RPOST_PS_IB
 * @qp_type: in: RPOST_QPT_RC
 * @handle: out: the id
 *
 * Errors: EBADF, EOPNOTSUPP for another port space or type of queue pair,
 * EINVAL for one that does not exist, EMFILE, ENOMEM.
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
 * @addr_len: in: bytes of @addr that count: those of struct sockaddr_in or
 *            struct sockaddr_in6
 * @addr: in: AF_INET or AF_INET6 address; port 0 lets the kernel choose
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
 * @timeout_ms: in: milliseconds until it counts as failed, 1 to 3,600,000
 * @src_len: in: bytes of @src that count, 0 for none; a bound id has none
 * @dst_len: in: bytes of @dst that count
 * @src: in: address to bind to
 * @dst: in: address of the other side
 *
 * Ends with RPOST_EVENT_ADDR_RESOLVED or RPOST_EVENT_ADDR_ERROR.
 *
 * Errors: as for RPOST_IOC_BIND_ADDR; ENOMEM while the id has many events that
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
 * @timeout_ms: in: milliseconds until it counts as failed, 1 to 3,600,000
 *
 * Ends with RPOST_EVENT_ROUTE_RESOLVED or RPOST_EVENT_ROUTE_ERROR.
 *
 * Errors: EINVAL in another state, ENOMEM while the id has many events that have
 * not been fetched.
 */
struct rpost_resolve_route {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 timeout_ms;
};

#define RPOST_IOC_RESOLVE_ROUTE	_IO(RPOST_IOC_TYPE, RPOST_CMD_RESOLVE_ROUTE)

/**
 * enum rpost_id_state - where a connection id stands
 * @RPOST_ID_IDLE: created
 * @RPOST_ID_BOUND: has a local address
 * @RPOST_ID_ADDR_QUERY: resolving the address
 * @RPOST_ID_ADDR_RESOLVED: has a device
 * @RPOST_ID_ROUTE_QUERY: resolving the route
 * @RPOST_ID_ROUTE_RESOLVED: ready to connect
 * @RPOST_ID_LISTEN: listening
 * @RPOST_ID_REQUEST: made by a connection request that awaits an answer
 * @RPOST_ID_CONNECTING: the other side has been asked
 * @RPOST_ID_ACCEPTING: accepted, not yet established
 * @RPOST_ID_CONNECTED: established
 * @RPOST_ID_DISCONNECTED: was connected
 * @RPOST_ID_ERROR: the connection failed, or the request was rejected
 * @RPOST_ID_REMOVED: the device has gone; can only be destroyed
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
 *
 * What the id knows about its ends.
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
};

#define RPOST_IOC_QUERY_ID	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_ID)

/**
 * struct rpost_listen - ioctl(RPOST_IOC_LISTEN)
 * @size: sizeof(struct rpost_listen)
 * @flags: must be 0
 * @id: in: the id, bound, or idle to listen on a port that the kernel chooses
 * @backlog: in: requests that may wait to be fetched; further ones are not
 *           answered, and the other side repeats them until it gives up; 0 or
 *           above the module's maximum counts as the maximum
 *
 * Each request comes as RPOST_EVENT_CONNECT_REQUEST with an id of its own.
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
 * @id: in: the id, with its route resolved and a queue pair
 * @reserved: must be 0
 * @param: in: @param.qp_num and @param.srq must be 0
 *
 * Ends with RPOST_EVENT_ESTABLISHED, RPOST_EVENT_REJECTED,
 * RPOST_EVENT_UNREACHABLE or RPOST_EVENT_CONNECT_ERROR.
 *
 * Errors: EINVAL in another state, without a queue pair, or for more private
 * data than the transport carries.
 */
struct rpost_connect {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
	struct rpost_conn_param param;
};

#define RPOST_IOC_CONNECT	_IO(RPOST_IOC_TYPE, RPOST_CMD_CONNECT)

/**
 * struct rpost_accept - ioctl(RPOST_IOC_ACCEPT)
 * @size: sizeof(struct rpost_accept)
 * @flags: must be 0
 * @id: in: the id of the request, with a queue pair
 * @reserved: must be 0
 * @param: in: as for RPOST_IOC_CONNECT
 *
 * Ends with RPOST_EVENT_ESTABLISHED or RPOST_EVENT_CONNECT_ERROR.
 *
 * Errors: EINVAL in another state, without a queue pair, or for more private
 * data than the transport carries.
 */
struct rpost_accept {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
	struct rpost_conn_param param;
};

#define RPOST_IOC_ACCEPT	_IO(RPOST_IOC_TYPE, RPOST_CMD_ACCEPT)

/**
 * struct rpost_reject - ioctl(RPOST_IOC_REJECT)
 * @size: sizeof(struct rpost_reject)
 * @flags: must be 0
 * @id: in: the id of the request
 * @private_data_len: in: bytes of @private_data
 * @private_data: in: goes with the rejection
 *
 * The id remains and should be destroyed.
 */
struct rpost_reject {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 private_data_len;
	__u8 private_data[RPOST_MAX_PRIVATE_DATA];
};

#define RPOST_IOC_REJECT	_IO(RPOST_IOC_TYPE, RPOST_CMD_REJECT)

/**
 * struct rpost_disconnect - ioctl(RPOST_IOC_DISCONNECT)
 * @size: sizeof(struct rpost_disconnect)
 * @flags: must be 0
 * @id: in: the id, connected or accepting or disconnected
 * @reserved: must be 0
 *
 * Both sides get RPOST_EVENT_DISCONNECTED, and what their queue pairs still
 * hold is flushed.  Answers a disconnection by the other side too.
 *
 * Errors: ENOTCONN for an id that never had a connection.
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

/* --------------------------------------------------------- queue pairs */

/* struct rpost_create_qp.flags: every work request on the send queue is
 * signaled
 */
#define RPOST_QP_SIG_ALL	0x1

/**
 * struct rpost_create_qp - ioctl(RPOST_IOC_CREATE_QP)
 * @size: sizeof(struct rpost_create_qp)
 * @flags: RPOST_QP_*
 * @id: in: the id, with a device and without a queue pair
 * @pd: in: protection domain, of the id's device
 * @send_cq: in: completion queue for the send queue, of the id's device
 * @recv_cq: in: completion queue for the receive queue, of the id's device
 * @max_send_wr: in: work requests on the send queue; out: at least as many
 * @max_recv_wr: in: work requests on the receive queue; out: at least as many
 * @max_send_sge: in: scatter/gather entries in a send; out: the same
 * @max_recv_sge: in: scatter/gather entries in a receive; out: the same
 * @max_inline_data: in: bytes of inline data in a send; out: at least as many
 * @handle: out: the queue pair
 * @qp_num: out: its number
 * @reserved: must be 0
 *
 * The queue pair starts in the INIT state: it takes receives, and sends when
 * the connection exists.
 *
 * Errors: EINVAL for a count above what the device or this module takes, an
 * id without a device or with a queue pair, or objects of different devices.
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
};

#define RPOST_IOC_CREATE_QP	_IO(RPOST_IOC_TYPE, RPOST_CMD_CREATE_QP)

/**
 * struct rpost_query_qp - ioctl(RPOST_IOC_QUERY_QP)
 * @size: sizeof(struct rpost_query_qp)
 * @flags: must be 0
 * @handle: in: the queue pair
 * @qp_state: out: enum ibv_qp_state
 * @path_mtu: out: enum ibv_mtu
 * @qkey: out: as in ibv_query_qp(3)
 * @rq_psn: out: as in ibv_query_qp(3)
 * @sq_psn: out: as in ibv_query_qp(3)
 * @dest_qp_num: out: as in ibv_query_qp(3)
 * @access: out: RPOST_ACCESS_* granted to the peer
 * @pkey_index: out: as in ibv_query_qp(3)
 * @port_num: out: as in ibv_query_qp(3)
 * @max_rd_atomic: out: as in ibv_query_qp(3)
 * @max_dest_rd_atomic: out: as in ibv_query_qp(3)
 * @min_rnr_timer: out: as in ibv_query_qp(3)
 * @timeout: out: as in ibv_query_qp(3)
 * @retry_cnt: out: as in ibv_query_qp(3)
 * @rnr_retry: out: as in ibv_query_qp(3)
 * @sq_draining: out: as in ibv_query_qp(3)
 * @max_send_wr: out: as the queue pair was made
 * @max_recv_wr: out: as the queue pair was made
 * @max_send_sge: out: as the queue pair was made
 * @max_recv_sge: out: as the queue pair was made
 * @max_inline_data: out: as the queue pair was made
 * @qp_flags: out: the flags that the queue pair was made with
 * @dgid: out: GID of the other side
 * @sgid_index: out: local GID by its index
 * @hop_limit: out: of the path
 * @traffic_class: out: of the path
 * @sl: out: service level of the path
 * @reserved: out: 0
 */
struct rpost_query_qp {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 qp_state;
	__u32 path_mtu;
	__u32 qkey;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 dest_qp_num;
	__u32 access;
	__u16 pkey_index;
	__u8 port_num;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 sq_draining;
	__u8 sgid_index;
	__u8 hop_limit;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline_data;
	__u32 qp_flags;
	__u8 dgid[16];
	__u8 traffic_class;
	__u8 sl;
	__u8 reserved[2];
};

#define RPOST_IOC_QUERY_QP	_IO(RPOST_IOC_TYPE, RPOST_CMD_QUERY_QP)

/* --------------------------------------------------------------- posts */

/**
 * struct rpost_sge - one scatter/gather entry
 * @addr: first byte, as named by the region's iova
 * @length: bytes
 * @lkey: of a region in the queue pair's protection domain
 *
 * An entry of 0 bytes names no memory, and its key is not looked at.
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

/* enum ibv_send_flags has the same values */
#define RPOST_SEND_FENCE	0x1
#define RPOST_SEND_SIGNALED	0x2
#define RPOST_SEND_SOLICITED	0x4
#define RPOST_SEND_INLINE	0x8

/**
 * struct rpost_send_wr - one work request for a send queue
 * @wr_id: handed back in the completion
 * @size: bytes from here to the next work request: this struct and what
 *        follows it, rounded up to a multiple of 8
 * @opcode: RPOST_WR_*
 * @send_flags: RPOST_SEND_*
 * @num_sge: entries of struct rpost_sge that follow this struct; 0 with
 *           RPOST_SEND_INLINE
 * @inline_len: bytes of data that follow this struct; 0 without
 *              RPOST_SEND_INLINE
 * @imm_data: immediate data, big endian, handed on as it is
 * @rkey: key of the remote region (RDMA and atomics)
 * @reserved: must be 0
 * @remote_addr: address in the remote region; a multiple of 8 for atomics
 * @compare_add: value to compare with, or to add
 * @swap: value to store
 *
 * Inline data goes with sends and RDMA writes.  Atomics have one entry of 8
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
	__aligned_u64 remote_addr;
	__aligned_u64 compare_add;
	__aligned_u64 swap;
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
 * struct rpost_post - ioctl(RPOST_IOC_POST_SEND), ioctl(RPOST_IOC_POST_RECV)
 * @size: sizeof(struct rpost_post)
 * @flags: must be 0
 * @qp: in: the queue pair
 * @count: in: work requests in the block, at least 1
 * @wrs: in: user pointer to the block: struct rpost_send_wr, or struct
 *       rpost_recv_wr, each followed by its entries or data
 * @wrs_size: in: bytes in the block, at most max_wr_bytes of struct
 *            rpost_query
 * @posted: out: work requests that were taken, also when the call fails
 *
 * Posts in order.  The first work request that is refused ends the call with
 * its error, and those before it are posted.
 * The block, inline data included, has been copied when the call returns.
 *
 * A scatter/gather entry whose key, range or access rights are not those of a
 * live region of the queue pair's protection domain does not fail the post:
 * the work request completes with RPOST_WC_LOC_PROT_ERR, and the queue pair
 * goes to the error state, as in verbs.  Sends in the error state complete
 * with RPOST_WC_WR_FLUSH_ERR.
 *
 * Errors: EINVAL for a queue pair that is not connected yet (sends), a count
 * or length above what it was made for, a block that does not add up;
 * EOPNOTSUPP for an opcode or flag that is not known; ENOMEM when the queue
 * is full.
 */
struct rpost_post {
	__u32 size;
	__u32 flags;
	__u32 qp;
	__u32 count;
	__aligned_u64 wrs;
	__u32 wrs_size;
	__u32 posted;
};

#define RPOST_IOC_POST_SEND	_IO(RPOST_IOC_TYPE, RPOST_CMD_POST_SEND)
#define RPOST_IOC_POST_RECV	_IO(RPOST_IOC_TYPE, RPOST_CMD_POST_RECV)

#endif /* _UAPI_RDMA_POST_ABI_H */
