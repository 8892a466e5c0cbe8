// SPDX-License-Identifier: GPL-2.0
/*
 * Connections end before their queue pairs: those of ids with a queue pair, and those of
 * ids that have only named its number.
 */
#include "id/id.h"

/*
 * Note the queue pair, of ib_dev, that an id without one connects; qp_num is 0 for none.
 * The id is locked, or about to be freed.  Destroying the queue pair then ends the
 * connection, see rpost_ids_hang_up().
 */
void rpost_id_name_qp(struct rpost_id *id, struct ib_device *ib_dev, u32 qp_num)
{
	struct rpost_file *file = id->obj.file;

	if (!id->qp_num && !qp_num)
		return;
	spin_lock(&file->handles.lock);
	if (id->qp_num)
		hash_del(&id->by_qp_num);
	id->qp_num = qp_num;
	id->qp_dev = ib_dev;
	if (qp_num)
		hash_add(file->named, &id->by_qp_num, qp_num);
	spin_unlock(&file->handles.lock);
}

/* States in which the connection has been begun, and its end cannot be sent yet. */
#define RPOST_ID_MAY_ESTABLISH	(BIT(RPOST_ID_CONNECTING) | \
				 BIT(RPOST_ID_ACCEPTING) | BIT(RPOST_ID_ERROR))

/*
 * End the connection of an id, whose lock is held, before its queue pair goes, or because
 * its path has.
 *
 * The device may give the queue pair's number to the next one at once, perhaps
 * to another program's.  The peer takes a second connection with the same
 * number as a sign that the first is stale, and ends both.
 */
void rpost_id_hang_up_locked(struct rpost_id *id)
{
	rpost_id_name_qp(id, NULL, 0);
	if (!id->cm_id || id->cm_id->qp_type == IB_QPT_UD)
		return;
	rdma_lock_handler(id->cm_id);
	id->hung_up = BIT(READ_ONCE(id->state)) & RPOST_ID_MAY_ESTABLISH;
	if (READ_ONCE(id->state) == RPOST_ID_CONNECTED)
		rdma_disconnect(id->cm_id);
	else if (id->responded && !rpost_id_move(id, RPOST_ID_MAY_REPLY,
						 RPOST_ID_ERROR))
		rdma_reject(id->cm_id, NULL, 0, RPOST_REJ_CONSUMER_DEFINED);
	id->responded = false;
	rdma_unlock_handler(id->cm_id);
}

/* Return an id that has named the queue pair, with a reference, or NULL. */
static struct rpost_id *rpost_id_named(struct rpost_file *file,
				       struct ib_device *ib_dev, u32 qp_num)
{
	struct rpost_id *id;

	spin_lock(&file->handles.lock);
	hash_for_each_possible(file->named, id, by_qp_num, qp_num)
		if (id->qp_num == qp_num && id->qp_dev == ib_dev &&
		    refcount_inc_not_zero(&id->obj.refs))
			goto out;
	id = NULL;
out:
	spin_unlock(&file->handles.lock);
	return id;
}

/* End the connection of an id before its queue pair goes. */
void rpost_id_hang_up(struct rpost_id *id)
{
	mutex_lock(&id->lock);
	rpost_id_hang_up_locked(id);
	mutex_unlock(&id->lock);
}

/*
 * End the connections of ids that have named a queue pair of ib_dev, which commands no
 * longer find, and to which none has a reference.
 */
void rpost_ids_hang_up(struct rpost_file *file, struct ib_device *ib_dev, u32 qp_num)
{
	struct rpost_id *id;

	while ((id = rpost_id_named(file, ib_dev, qp_num))) {
		mutex_lock(&id->lock);
		if (id->qp_num == qp_num)
			rpost_id_hang_up_locked(id);
		rpost_id_exit(id);
	}
}
