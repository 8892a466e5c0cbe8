// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Options of connection ids and of their connections (ECE). */
#include <string.h>

#include "core/internal.h"

/* Returns 0 or an errno value. */
static int get_byte(uint32_t *value, const void *optval, size_t optlen)
{
	if (!optval || optlen != sizeof(uint8_t))
		return EINVAL;
	*value = *(const uint8_t *)optval;
	return 0;
}

static int get_bool(uint32_t *value, const void *optval, size_t optlen)
{
	int number;

	if (!optval || optlen != sizeof(number))
		return EINVAL;
	memcpy(&number, optval, sizeof(number));
	*value = !!number;
	return 0;
}

static int get_paths(struct rpost_set_option *cmd, const void *optval,
		     size_t optlen)
{
	if (!optval || !optlen || optlen > UINT32_MAX ||
	    optlen % sizeof(struct ibv_path_data))
		return EINVAL;
	cmd->data = (uintptr_t)optval;
	cmd->data_len = (uint32_t)optlen;
	return 0;
}

static int fill_option(struct rpost_set_option *cmd, const void *optval,
		       size_t optlen)
{
	if (cmd->level == RDMA_OPTION_IB)
		return cmd->option == RDMA_OPTION_IB_PATH ?
		       get_paths(cmd, optval, optlen) : ENOSYS;
	if (cmd->level != RDMA_OPTION_ID)
		return ENOSYS;

	switch (cmd->option) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return get_byte(&cmd->value, optval, optlen);
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		return get_bool(&cmd->value, optval, optlen);
	default:
		return ENOSYS;
	}
}

/**
 * rdma_set_option() - set an option of an id, rdma_set_option(3)
 * @id: the id
 * @level: RDMA_OPTION_ID or RDMA_OPTION_IB
 * @optname: the option
 * @optval: its value: of 8 bits for RDMA_OPTION_ID_TOS and
 *          RDMA_OPTION_ID_ACK_TIMEOUT, an int for RDMA_OPTION_ID_REUSEADDR and
 *          RDMA_OPTION_ID_AFONLY, an array of struct ibv_path_data for
 *          RDMA_OPTION_IB_PATH
 * @optlen: bytes of the value
 *
 * RDMA_OPTION_IB_PATH results in RDMA_CM_EVENT_ROUTE_RESOLVED, for which the
 * call does not wait.
 *
 * Return: 0, or -1 with errno: EINVAL for a value of the wrong length or out of
 * range, or a state in which the option cannot be set; ENOSYS for an option
 * that does not exist, EOPNOTSUPP if the module does not support it.
 */
RPOST_API int rdma_set_option(struct rdma_cm_id *id, int level, int optname,
			      void *optval, size_t optlen)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_set_option cmd = {
		.id = rpost_id_handle(priv),
		.level = level,
		.option = optname,
	};
	int err;

	err = fill_option(&cmd, optval, optlen);
	if (err)
		return rpost_fail(err);
	return rpost_fail(rpost_ioctl(priv->file->fd, RPOST_IOC_SET_OPTION,
				      &cmd));
}

/**
 * rdma_set_local_ece() - set options to propose or to answer with,
 * rdma_set_local_ece(3)
 * @id: the id, without a queue pair, since queue pairs of ids have no options
 * @ece: the options, with a vendor
 *
 * The next rdma_connect() or rdma_accept() sends them.
 *
 * Return: 0, or -1 with errno: EINVAL for an id with a queue pair or options
 * without a vendor.
 */
RPOST_API int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct rpost_id *priv = rpost_id(id);

	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return rpost_fail(EINVAL);
	priv->local_ece.vendor_id = ece->vendor_id;
	priv->local_ece.attr_mod = ece->options;
	return 0;
}

/**
 * rdma_get_remote_ece() - get options of the other side, rdma_get_remote_ece(3)
 * @id: the id of a request, or one that has got a response, without a queue
 *      pair
 * @ece: set to the options; vendor_id is 0 if there were none
 *
 * Return: 0, or -1 with errno: EINVAL for an id with a queue pair.
 */
RPOST_API int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct rpost_id *priv = rpost_id(id);

	if (!id || id->qp || !ece)
		return rpost_fail(EINVAL);
	ece->vendor_id = priv->remote_ece.vendor_id;
	ece->options = priv->remote_ece.attr_mod;
	ece->comp_mask = 0;
	return 0;
}
