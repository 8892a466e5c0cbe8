/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints.  Documentation/tool.rst has what they tell, and rdma-post trace shows them.
 *
 * All begin with the open file and who opened it: events and completions are often
 * reported by a thread of the kernel, so that the current task tells nothing.  The
 * text is words of the form name=value, which rdma-post reads.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdma_post

#if !defined(RPOST_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPOST_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "core/core.h"

/* In the order of enum rpost_id_state; face/fdinfo.c has a table of them. */
#define RPOST_ID_STATES					\
	rpost_state(IDLE, "idle")			\
	rpost_state(BOUND, "bound")			\
	rpost_state(ADDR_QUERY, "addr-query")		\
	rpost_state(ADDR_RESOLVED, "addr-resolved")	\
	rpost_state(ROUTE_QUERY, "route-query")		\
	rpost_state(ROUTE_RESOLVED, "route-resolved")	\
	rpost_state(LISTEN, "listen")			\
	rpost_state(REQUEST, "request")			\
	rpost_state(CONNECTING, "connecting")		\
	rpost_state(ACCEPTING, "accepting")		\
	rpost_state(CONNECTED, "connected")		\
	rpost_state(DISCONNECTED, "disconnected")	\
	rpost_state(ERROR, "error")			\
	rpost_state_end(REMOVED, "removed")

#undef rpost_state
#undef rpost_state_end
#define rpost_state(name, text)		TRACE_DEFINE_ENUM(RPOST_ID_##name);
#define rpost_state_end(name, text)	TRACE_DEFINE_ENUM(RPOST_ID_##name);

RPOST_ID_STATES

#undef rpost_state
#undef rpost_state_end
#define rpost_state(name, text)		{ RPOST_ID_##name, text },
#define rpost_state_end(name, text)	{ RPOST_ID_##name, text }

#define rpost_show_state(state)	__print_symbolic(state, RPOST_ID_STATES)

/* These are no enum, so that tools know their values. */
#define rpost_show_opcode(opcode)				\
	__print_symbolic(opcode,				\
			 { RPOST_WC_SEND, "send" },		\
			 { RPOST_WC_RDMA_WRITE, "write" },	\
			 { RPOST_WC_RDMA_READ, "read" },	\
			 { RPOST_WC_COMP_SWAP, "comp-swap" },	\
			 { RPOST_WC_FETCH_ADD, "fetch-add" },	\
			 { RPOST_WC_RECV, "recv" },		\
			 { RPOST_WC_RECV_RDMA_WITH_IMM, "recv-write" })

#define RPOST_TRACE_FILE			\
	__field(u64, file)			\
	__field(int, pid)			\
	__array(char, opener, RPOST_NAME_SIZE)

#define RPOST_TRACE_FILE_ASSIGN(opened)					\
	do {								\
		const struct rpost_file *of = (opened);			\
									\
		__entry->file = of->id;					\
		__entry->pid = of->pid;					\
		strscpy_pad(__entry->opener, of->name, RPOST_NAME_SIZE);	\
	} while (0)

#define RPOST_TRACE_FILE_FORMAT	"file=%llu pid=%d opener=%s "
#define RPOST_TRACE_FILE_ARGS	__entry->file, __entry->pid, __entry->opener

TRACE_EVENT(rpost_id_move,
	TP_PROTO(const struct rpost_obj *id, u32 from, u32 to, int ret),
	TP_ARGS(id, from, to, ret),
	TP_STRUCT__entry(
		RPOST_TRACE_FILE
		__field(u32, id)
		__field(u32, from)
		__field(u32, to)
		__field(int, ret)
	),
	TP_fast_assign(
		RPOST_TRACE_FILE_ASSIGN(id->file);
		__entry->id = id->handle;
		__entry->from = from;
		__entry->to = to;
		__entry->ret = ret;
	),
	TP_printk(RPOST_TRACE_FILE_FORMAT "id=%u from=%s to=%s ret=%d",
		  RPOST_TRACE_FILE_ARGS, __entry->id,
		  rpost_show_state(__entry->from),
		  rpost_show_state(__entry->to), __entry->ret)
);

TRACE_EVENT(rpost_event,
	TP_PROTO(const struct rpost_obj *id, const struct rpost_get_event *event),
	TP_ARGS(id, event),
	TP_STRUCT__entry(
		RPOST_TRACE_FILE
		__field(u32, id)
		__field(u32, listener)
		__field(u32, event)
		__field(int, status)
	),
	TP_fast_assign(
		RPOST_TRACE_FILE_ASSIGN(id->file);
		__entry->id = event->id;
		__entry->listener = event->listen_id;
		__entry->event = event->event;
		__entry->status = event->status;
	),
	TP_printk(RPOST_TRACE_FILE_FORMAT "id=%u listener=%u event=%s status=%d",
		  RPOST_TRACE_FILE_ARGS, __entry->id, __entry->listener,
		  rdma_show_cm_event(__entry->event), __entry->status)
);

/*
 * @handle: of the queue pair, or of the shared receive queue; @qp_num: 0 for that
 * @ret: the error that the program gets; 0 if any work request was posted
 */
TRACE_EVENT(rpost_post,
	TP_PROTO(const struct rpost_file *opened, u32 handle, u32 qp_num, bool send,
		 u32 count, u32 posted, int ret),
	TP_ARGS(opened, handle, qp_num, send, count, posted, ret),
	TP_STRUCT__entry(
		RPOST_TRACE_FILE
		__field(u32, handle)
		__field(u32, qp_num)
		__field(bool, send)
		__field(u32, count)
		__field(u32, posted)
		__field(int, ret)
	),
	TP_fast_assign(
		RPOST_TRACE_FILE_ASSIGN(opened);
		__entry->handle = handle;
		__entry->qp_num = qp_num;
		__entry->send = send;
		__entry->count = count;
		__entry->posted = posted;
		__entry->ret = ret;
	),
	TP_printk(RPOST_TRACE_FILE_FORMAT "handle=%u qp=%u queue=%s count=%u posted=%u ret=%d",
		  RPOST_TRACE_FILE_ARGS, __entry->handle, __entry->qp_num,
		  __entry->send ? "send" : "recv", __entry->count,
		  __entry->posted, __entry->ret)
);

TRACE_EVENT(rpost_complete,
	TP_PROTO(const struct rpost_obj *cq, u32 qp_num, u64 wr_id, u32 opcode,
		 u32 status, u32 byte_len),
	TP_ARGS(cq, qp_num, wr_id, opcode, status, byte_len),
	TP_STRUCT__entry(
		RPOST_TRACE_FILE
		__field(u32, cq)
		__field(u32, qp_num)
		__field(u64, wr_id)
		__field(u32, opcode)
		__field(u32, status)
		__field(u32, byte_len)
	),
	TP_fast_assign(
		RPOST_TRACE_FILE_ASSIGN(cq->file);
		__entry->cq = cq->handle;
		__entry->qp_num = qp_num;
		__entry->wr_id = wr_id;
		__entry->opcode = opcode;
		__entry->status = status;
		__entry->byte_len = byte_len;
	),
	TP_printk(RPOST_TRACE_FILE_FORMAT "cq=%u qp=%u wr_id=%llu opcode=%s status=%s len=%u",
		  RPOST_TRACE_FILE_ARGS, __entry->cq, __entry->qp_num,
		  __entry->wr_id, rpost_show_opcode(__entry->opcode),
		  rdma_show_wc_status(__entry->status), __entry->byte_len)
);

#endif /* RPOST_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
