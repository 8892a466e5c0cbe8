// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Names and rates.  Logs and scripts depend on these texts. */
#include "core/internal.h"

static const char *name_of(const char *const *names, size_t n, int value, const char *other)
{
	return value >= 0 && (size_t)value < n && names[value] ? names[value] : other;
}

#define EVENT(name) [name] = #name

/**
 * rdma_event_str() - get the name of an event, rdma_event_str(3)
 * @event: the event's type
 *
 * Return: a static string, "UNKNOWN EVENT" if there is no such type.
 */
RPOST_API const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		EVENT(RDMA_CM_EVENT_ADDR_RESOLVED),
		EVENT(RDMA_CM_EVENT_ADDR_ERROR),
		EVENT(RDMA_CM_EVENT_ROUTE_RESOLVED),
		EVENT(RDMA_CM_EVENT_ROUTE_ERROR),
		EVENT(RDMA_CM_EVENT_CONNECT_REQUEST),
		EVENT(RDMA_CM_EVENT_CONNECT_RESPONSE),
		EVENT(RDMA_CM_EVENT_CONNECT_ERROR),
		EVENT(RDMA_CM_EVENT_UNREACHABLE),
		EVENT(RDMA_CM_EVENT_REJECTED),
		EVENT(RDMA_CM_EVENT_ESTABLISHED),
		EVENT(RDMA_CM_EVENT_DISCONNECTED),
		EVENT(RDMA_CM_EVENT_DEVICE_REMOVAL),
		EVENT(RDMA_CM_EVENT_MULTICAST_JOIN),
		EVENT(RDMA_CM_EVENT_MULTICAST_ERROR),
		EVENT(RDMA_CM_EVENT_ADDR_CHANGE),
		EVENT(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		/* Only later headers name it. */
		[16] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[17] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
	};

	return name_of(names, ARRAY_SIZE(names), event, "UNKNOWN EVENT");
}

/**
 * ibv_wc_status_str() - describe a completion's status, ibv_poll_cq(3)
 * @status: the status
 *
 * Return: a static string, "unknown" if there is no such status.
 */
RPOST_API const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[IBV_WC_MW_BIND_ERR] = "memory management operation error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted error",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "TM error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
	};

	return name_of(names, ARRAY_SIZE(names), status, "unknown");
}

/**
 * ibv_event_type_str() - describe an asynchronous event, ibv_event_type_str(3)
 * @event: the event's type
 *
 * Return: a static string, "unknown" if there is no such type.
 */
RPOST_API const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
		[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID change",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key change",
		[IBV_EVENT_SM_CHANGE] = "SM change",
		[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
		[IBV_EVENT_WQ_FATAL] = "WQ fatal",
		/* Only later headers name it. */
		[IBV_EVENT_WQ_FATAL + 1] = "Device link speed change",
	};

	return name_of(names, ARRAY_SIZE(names), event, "unknown");
}

/**
 * ibv_node_type_str() - describe a node type, ibv_event_type_str(3)
 * @node_type: the type
 *
 * Return: a static string, "unknown" if there is no such type.
 */
RPOST_API const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	static const char *const names[] = {
		[IBV_NODE_CA] = "InfiniBand channel adapter",
		[IBV_NODE_SWITCH] = "InfiniBand switch",
		[IBV_NODE_ROUTER] = "InfiniBand router",
		[IBV_NODE_RNIC] = "iWARP NIC",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return name_of(names, ARRAY_SIZE(names), node_type, "unknown");
}

/**
 * ibv_port_state_str() - describe a port's state, ibv_event_type_str(3)
 * @port_state: the state
 *
 * Return: a static string, "unknown" if there is no such state.
 */
RPOST_API const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "no state change (NOP)",
		[IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "init",
		[IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active",
		[IBV_PORT_ACTIVE_DEFER] = "active defer",
	};

	return name_of(names, ARRAY_SIZE(names), port_state, "unknown");
}

/* A rate as a multiple of 2.5 Gbit/s, or -1 if it is none, and in Mbit/s. */
static const struct {
	enum ibv_rate rate;
	int mult;
	int mbps;
} rates[] = {
	{ IBV_RATE_2_5_GBPS,	1,	2500 },
	{ IBV_RATE_5_GBPS,	2,	5000 },
	{ IBV_RATE_10_GBPS,	4,	10000 },
	{ IBV_RATE_20_GBPS,	8,	20000 },
	{ IBV_RATE_30_GBPS,	12,	30000 },
	{ IBV_RATE_40_GBPS,	16,	40000 },
	{ IBV_RATE_60_GBPS,	24,	60000 },
	{ IBV_RATE_80_GBPS,	32,	80000 },
	{ IBV_RATE_120_GBPS,	48,	120000 },
	{ IBV_RATE_14_GBPS,	-1,	14062 },
	{ IBV_RATE_56_GBPS,	-1,	56250 },
	{ IBV_RATE_112_GBPS,	-1,	112500 },
	{ IBV_RATE_168_GBPS,	-1,	168750 },
	{ IBV_RATE_25_GBPS,	-1,	25781 },
	{ IBV_RATE_100_GBPS,	-1,	103125 },
	{ IBV_RATE_200_GBPS,	-1,	206250 },
	{ IBV_RATE_300_GBPS,	-1,	309375 },
	{ IBV_RATE_28_GBPS,	11,	28125 },
	{ IBV_RATE_50_GBPS,	20,	53125 },
	{ IBV_RATE_400_GBPS,	160,	425000 },
	{ IBV_RATE_600_GBPS,	240,	637500 },
	{ IBV_RATE_800_GBPS,	320,	850000 },
	{ IBV_RATE_1200_GBPS,	480,	1275000 },
};

/**
 * ibv_rate_to_mult() - convert a rate to multiples of 2.5 Gbit/s,
 * ibv_rate_to_mult(3)
 * @rate: the rate
 *
 * Return: the multiple, or -1 if the rate is not one.
 */
RPOST_API int ibv_rate_to_mult(enum ibv_rate rate)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mult;
	return -1;
}

/**
 * mult_to_ibv_rate() - convert multiples of 2.5 Gbit/s to a rate,
 * ibv_rate_to_mult(3)
 * @mult: the multiple
 *
 * Return: the rate, or IBV_RATE_MAX if there is no such rate.
 */
RPOST_API enum ibv_rate mult_to_ibv_rate(int mult)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rates); i++)
		if (mult > 0 && rates[i].mult == mult)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

/**
 * ibv_rate_to_mbps() - convert a rate to Mbit/s, ibv_rate_to_mbps(3)
 * @rate: the rate
 *
 * Return: Mbit/s, or -1 if there is no such rate.
 */
RPOST_API int ibv_rate_to_mbps(enum ibv_rate rate)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

/**
 * mbps_to_ibv_rate() - convert Mbit/s to a rate, ibv_rate_to_mbps(3)
 * @mbps: Mbit/s
 *
 * Return: the rate, or IBV_RATE_MAX if there is no such rate.
 */
RPOST_API enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}
