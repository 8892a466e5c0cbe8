/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdma_post

#if !defined(RPOST_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPOST_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(rpost_id_move,
	TP_PROTO(u32 id, u32 from, u32 to, int ret),
	TP_ARGS(id, from, to, ret),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, from)
		__field(u32, to)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->from = from;
		__entry->to = to;
		__entry->ret = ret;
	),
	TP_printk("id %u state %u -> %u: %d", __entry->id, __entry->from,
		  __entry->to, __entry->ret)
);

TRACE_EVENT(rpost_event,
	TP_PROTO(u32 id, u32 event, int status),
	TP_ARGS(id, event, status),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, event)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->event = event;
		__entry->status = status;
	),
	TP_printk("id %u event %u status %d", __entry->id, __entry->event,
		  __entry->status)
);

TRACE_EVENT(rpost_post,
	TP_PROTO(u32 qp_num, bool send, u32 posted, int ret),
	TP_ARGS(qp_num, send, posted, ret),
	TP_STRUCT__entry(
		__field(u32, qp_num)
		__field(bool, send)
		__field(u32, posted)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->qp_num = qp_num;
		__entry->send = send;
		__entry->posted = posted;
		__entry->ret = ret;
	),
	TP_printk("qp %u %s posted %u: %d", __entry->qp_num,
		  __entry->send ? "send" : "recv", __entry->posted,
		  __entry->ret)
);

TRACE_EVENT(rpost_complete,
	TP_PROTO(u32 qp_num, u64 wr_id, u32 opcode, u32 status, u32 byte_len),
	TP_ARGS(qp_num, wr_id, opcode, status, byte_len),
	TP_STRUCT__entry(
		__field(u32, qp_num)
		__field(u64, wr_id)
		__field(u32, opcode)
		__field(u32, status)
		__field(u32, byte_len)
	),
	TP_fast_assign(
		__entry->qp_num = qp_num;
		__entry->wr_id = wr_id;
		__entry->opcode = opcode;
		__entry->status = status;
		__entry->byte_len = byte_len;
	),
	TP_printk("qp %u wr_id %#llx opcode %u status %u len %u",
		  __entry->qp_num, __entry->wr_id, __entry->opcode,
		  __entry->status, __entry->byte_len)
);

#endif /* RPOST_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
