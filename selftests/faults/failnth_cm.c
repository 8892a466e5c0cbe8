// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Steps of connection ids, and of a whole life. */
#define _GNU_SOURCE
#include "failnth_steps.h"
#include "path.h"

/* -------------------------------------------------------------------- ids */

static int create_id_of(struct scene *s, uint32_t port_space, uint32_t type)
{
	return rp_create_id_of(s->c.fd, s->c.channel, port_space, type,
			       &s->made);
}

int create_id(struct scene *s)
{
	return create_id_of(s, RPOST_PS_TCP, RPOST_QPT_RC);
}

int create_ud_id(struct scene *s)
{
	return create_id_of(s, RPOST_PS_UDP, RPOST_QPT_UD);
}

int destroy_id(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_ID, s->made);
}

int bind_id(struct scene *s)
{
	return rp_bind(s->c.fd, s->made, 0);
}

int create_bound_id(struct scene *s)
{
	RP_TRY(create_id(s));
	return bind_id(s);
}

int create_ud_bound(struct scene *s)
{
	RP_TRY(create_ud_id(s));
	return bind_id(s);
}

int migrate_id(struct scene *s)
{
	return rp_migrate(s->c.fd, s->made, s->other);
}

int join_mcast(struct scene *s)
{
	return rp_join_mcast(&s->c, s->made, "239.1.2.3", 0);
}

int joined_mcast(struct scene *s)
{
	RP_TRY(create_ud_bound(s));
	RP_TRY(join_mcast(s));
	return wait_readable(s->c.channel);
}

int leave_mcast(struct scene *s)
{
	return rp_leave_mcast(&s->c, s->made, "239.1.2.3");
}

/* ------------------------------------------------------------ connections */

static int end_one(struct rp_end *end)
{
	if (end->qp)
		RP_TRY(rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	end->qp = 0;
	if (end->id)
		RP_TRY(rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	end->id = 0;
	end->cq.ring->head = __atomic_load_n(&end->cq.ring->tail,
					     __ATOMIC_ACQUIRE);
	return 0;
}

int end_client(struct scene *s)
{
	return end_one(&s->c);
}

/* Requests that were not fetched end with the listener. */
int end_both(struct scene *s)
{
	RP_TRY(end_one(&s->c));
	RP_TRY(end_one(&s->s));
	return rp_destroy(s->s.fd, RPOST_OBJ_ID, s->listener);
}

int create_client_id(struct scene *s)
{
	return rp_create_id(s->c.fd, s->c.channel, &s->c.id);
}

int resolve_addr(struct scene *s)
{
	return rp_resolve_addr(s->c.fd, s->c.id, 4711);
}

int resolve_client(struct scene *s)
{
	return rp_client_addr(&s->c, 4711);
}

int create_qp_of_id(struct scene *s)
{
	return made_qp(s, rp_create_qp(&s->c, 0));
}

int resolve_route(struct scene *s)
{
	return rp_resolve_route(s->c.fd, s->c.id);
}

/* Both ends of the path are on this host. */
int set_path(struct scene *s)
{
	struct ib_path_rec_data data;

	rp_pack_path(&data, s->addr.dgid, s->addr.dgid);
	return rp_set_path(&s->c, &data, sizeof(data));
}

int event_waits(struct scene *s)
{
	RP_TRY(create_client_id(s));
	RP_TRY(resolve_addr(s));
	return wait_readable(s->c.channel);
}

static int get_event_of(struct scene *s, struct rp_end *end)
{
	memset(&s->event, 0, sizeof(s->event));
	s->event.size = sizeof(s->event);
	return rp_ioctl(end->channel, RPOST_IOC_GET_EVENT, &s->event);
}

int get_event(struct scene *s)
{
	return get_event_of(s, &s->c);
}

int ready_to_connect(struct scene *s)
{
	RP_TRY(rp_listener(&s->s, &s->listener));
	RP_TRY(rp_client_route(&s->c, rp_port(s->s.fd, s->listener)));
	return create_qp_of_id(s);
}

int connect_client(struct scene *s)
{
	return rp_connect(s->c.fd, s->c.id);
}

int request_waits(struct scene *s)
{
	RP_TRY(ready_to_connect(s));
	RP_TRY(connect_client(s));
	return wait_readable(s->s.channel);
}

int get_request(struct scene *s)
{
	int ret = get_event_of(s, &s->s);

	s->s.id = ret ? 0 : s->event.id;
	return ret;
}

int ready_to_accept(struct scene *s)
{
	RP_TRY(request_waits(s));
	RP_TRY(get_request(s));
	return rp_create_qp(&s->s, 0);
}

int accept_server(struct scene *s)
{
	return rp_accept(s->s.fd, s->s.id);
}

int reject_server(struct scene *s)
{
	return rp_reject(&s->s, s->s.id, NULL, 0);
}

int connect_both(struct scene *s)
{
	RP_TRY(ready_to_accept(s));
	RP_TRY(accept_server(s));
	RP_TRY(rp_expect(s->c.channel, s->c.id, RPOST_EVENT_ESTABLISHED));
	return rp_expect(s->s.channel, s->s.id, RPOST_EVENT_ESTABLISHED);
}

int disconnect_client(struct scene *s)
{
	return rp_disconnect(s->c.fd, s->c.id);
}

/*
 * The connection manager allocates a work item, and then finds that the
 * connection is established already.
 */
int notify_server(struct scene *s)
{
	int ret = rp_notify(&s->s, RPOST_ASYNC_COMM_EST);

	return ret == -EISCONN ? 0 : ret;
}

int init_qp_attr(struct scene *s)
{
	struct rpost_qp_attr attr;

	return rp_init_qp_attr(&s->c, RPOST_QPS_INIT, &attr);
}

/* Connect a queue pair of the client's program up to CONNECT_RESPONSE. */
int ready_to_establish(struct scene *s)
{
	struct rp_end *c = &s->c;

	RP_TRY(rp_listener(&s->s, &s->listener));
	RP_TRY(create_qp(s));
	RP_TRY(rp_client_route(c, rp_port(s->s.fd, s->listener)));
	RP_TRY(rp_move_connected(c, RPOST_QPS_INIT));
	RP_TRY(rp_connect_qp(c, c->qp_num));
	RP_TRY(wait_readable(s->s.channel));
	RP_TRY(get_request(s));
	RP_TRY(rp_create_qp(&s->s, 0));
	RP_TRY(accept_server(s));
	RP_TRY(rp_expect(c->channel, c->id, RPOST_EVENT_CONNECT_RESPONSE));
	RP_TRY(rp_move_connected(c, RPOST_QPS_RTR));
	return rp_move_connected(c, RPOST_QPS_RTS);
}

int establish_client(struct scene *s)
{
	return rp_establish(&s->c);
}

/* ----------------------------------------------------------- a whole life */

/* Send a message from the client; the server has an event for it. */
static int life_message(struct scene *s, struct rp_end *c, struct rp_end *srv,
			int channel)
{
	struct rpost_reg_mr mr[2];
	struct rp_send send;
	struct rpost_wc wc;
	uint64_t user_data;
	int ret;

	RP_TRY(rp_reg_mr(c->fd, c->pd, s->buf, 4096, 0, &mr[0]));
	RP_TRY(rp_reg_mr(srv->fd, srv->pd, s->buf + 4096, 4096,
			 RPOST_ACCESS_LOCAL_WRITE, &mr[1]));
	RP_TRY(rp_post_recv(srv, 1, s->buf + 4096, 4096, mr[1].lkey));
	RP_TRY(rp_arm_cq(&srv->cq, 0));
	send = rp_send(RPOST_WR_SEND, 2, s->buf, 4096, mr[0].lkey);
	RP_TRY(rp_post_send(c, &send));
	RP_TRY(wait_readable(channel));
	if (read(channel, &user_data, sizeof(user_data)) < 0)
		return -errno;
	ret = rp_wait_cq(&srv->cq, &wc);
	if (ret == 1)
		ret = rp_wait_cq(&c->cq, &wc);
	return ret < 0 ? ret : ret == 1 && !wc.status ? 0 : -ETIME;
}

/* Like rp_end_init(), but with a completion channel. */
static int life_begin(struct rp_end *end, int *channel)
{
	end->fd = rp_open();
	if (end->fd < 0)
		return -errno;
	end->device = rp_first_device(end->fd);
	if (!end->device)
		return -ENOMEM;
	end->channel = rp_event_channel(end->fd);
	if (end->channel < 0)
		return end->channel;
	*channel = rp_comp_channel(end->fd);
	if (*channel < 0)
		return *channel;
	RP_TRY(rp_alloc_pd(end->fd, end->device, &end->pd));
	return rp_create_cq(end->fd, end->device, 64, *channel, &end->cq);
}

/* Like rp_join(), but without a port it fails. */
static int life_join(struct rp_end *c, struct rp_end *srv, uint32_t listener)
{
	uint16_t port = rp_port(srv->fd, listener);

	if (!port)
		return -EFAULT;
	RP_TRY(rp_client_route(c, port));
	RP_TRY(rp_create_qp(c, 0));
	RP_TRY(rp_connect(c->fd, c->id));
	RP_TRY(rp_take_request(srv, listener));
	RP_TRY(rp_create_qp(srv, 0));
	RP_TRY(rp_accept(srv->fd, srv->id));
	RP_TRY(rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	return rp_expect(srv->channel, srv->id, RPOST_EVENT_ESTABLISHED);
}

/*
 * If ib_cm cannot allocate its message, it gives the connection up without an
 * error and does not tell the peer: see cm_send_dreq_locked() and
 * cm_send_drep_locked().
 */
static int life_disconnect(struct rp_end *end, struct rp_end *other)
{
	struct pollfd pfd = { .fd = other->channel, .events = POLLIN };

	RP_TRY(rp_disconnect(end->fd, end->id));
	if (poll(&pfd, 1, 10000) != 1)
		return -ENOMEM;
	return rp_expect(other->channel, other->id, RPOST_EVENT_DISCONNECTED);
}

int life(struct scene *s, struct rp_end *c, struct rp_end *srv,
		int *channels)
{
	uint32_t listener;

	RP_TRY(life_begin(c, &channels[0]));
	RP_TRY(life_begin(srv, &channels[1]));
	RP_TRY(rp_listener(srv, &listener));
	RP_TRY(life_join(c, srv, listener));
	RP_TRY(life_message(s, c, srv, channels[1]));
	RP_TRY(life_disconnect(c, srv));
	RP_TRY(life_disconnect(srv, c));
	RP_TRY(rp_leave(c));
	return rp_leave(srv);
}

static void life_end(struct rp_end *end, int channel)
{
	if (end->cq.ring && end->cq.ring != MAP_FAILED)
		rp_unmap_cq(&end->cq);
	if (channel >= 0)
		close(channel);
	if (end->channel >= 0)
		close(end->channel);
	if (end->fd >= 0)
		close(end->fd);
}

/* After an error, both ends are closed, which leaves nothing behind. */
int whole_life(struct scene *s)
{
	struct rp_end ends[2] = {
		{ .fd = -1, .channel = -1 }, { .fd = -1, .channel = -1 },
	};
	int channels[2] = { -1, -1 };
	int ret = life(s, &ends[0], &ends[1], channels);

	life_end(&ends[0], channels[0]);
	life_end(&ends[1], channels[1]);
	return ret;
}
