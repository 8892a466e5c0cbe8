// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Devices and their contexts. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/internal.h"

static pthread_mutex_t devs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rpost_dev *devs;			/* under devs_lock */

int rpost_query_device(int fd, uint32_t num, struct rpost_query_device *cmd)
{
	*cmd = (struct rpost_query_device) { .device = num };
	return rpost_ioctl(fd, RPOST_IOC_QUERY_DEVICE, cmd);
}

static struct rpost_dev *dev_alloc(const struct rpost_query_device *query)
{
	struct rpost_dev *dev;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;

	dev->num = query->device;
	dev->guid = query->node_guid;
	dev->index = (int)query->index;
	dev->ibv.node_type = query->node_type;
	dev->ibv.transport_type = query->transport;
	snprintf(dev->ibv.name, sizeof(dev->ibv.name), "%s",
		 (const char *)query->name);
	/*
	 * Programs may read these; the library does not.  UCX looks for a node
	 * /dev/infiniband/DEV_NAME that it may open.
	 */
	strcpy(dev->ibv.dev_name, "rdma_post");
	snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path),
		 "/sys/class/infiniband/%s", dev->ibv.name);
	return dev;
}

/* Finds or makes the struct of device @num.  Returns NULL with errno. */
static struct rpost_dev *dev_get(struct rpost_file *file, uint32_t num)
{
	struct rpost_query_device query;
	struct rpost_dev *dev;
	int err;

	pthread_mutex_lock(&devs_lock);
	for (dev = devs; dev; dev = dev->next)
		if (dev->num == num)
			goto out;

	err = rpost_query_device(file->fd, num, &query);
	if (err) {
		errno = err;
		goto out;
	}
	dev = dev_alloc(&query);
	if (dev) {
		dev->next = devs;
		devs = dev;
	}
out:
	pthread_mutex_unlock(&devs_lock);
	return dev;
}

/* Returns the numbers of the devices, to be freed, or NULL with errno. */
static uint32_t *device_numbers(struct rpost_file *file, uint32_t *count)
{
	struct rpost_query_devices cmd;
	uint32_t room = 16;
	uint32_t *nums;
	int err;

	for (;;) {
		nums = calloc(room, sizeof(*nums));
		if (!nums)
			return NULL;

		cmd = (struct rpost_query_devices) { .devices = (uintptr_t)nums, .count = room };
		err = rpost_ioctl(file->fd, RPOST_IOC_QUERY_DEVICES, &cmd);
		if (err) {
			free(nums);
			return rpost_null(err);
		}
		if (cmd.count <= room)
			break;
		free(nums);
		room = cmd.count;
	}

	*count = cmd.count;
	return nums;
}

/*
 * Without any device a listener would wait for ever, so that librdmacm fails at
 * its first call.  Later the device may go: listeners wait for the next one.
 */
struct rpost_file *rpost_cm_file_get(void)
{
	static atomic_bool seen;
	struct rpost_query_devices cmd = {};
	struct rpost_file *file = rpost_file_get();
	int err;

	if (!file || seen)
		return file;
	err = rpost_ioctl(file->fd, RPOST_IOC_QUERY_DEVICES, &cmd);
	if (err)
		return rpost_null(err);
	if (!cmd.count) {
		rpost_debug_failed("look for devices", ENODEV);
		return NULL;
	}
	seen = true;
	return file;
}

/**
 * ibv_get_device_list() - list the RDMA devices, ibv_get_device_list(3)
 * @num_devices: set to the number of devices unless it is NULL
 *
 * Return: a NULL-terminated array, to be released by ibv_free_device_list(),
 * or NULL with errno: the error of opening /dev/rdma_post (ENOENT, EACCES,
 * ...), EPROTONOSUPPORT for a module that speaks another ABI, ENOMEM.  The
 * devices in the array stay valid until exit.
 */
RPOST_API struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct rpost_file *file;
	struct ibv_device **list;
	struct rpost_dev *dev;
	uint32_t *nums, count, i;
	int n = 0;

	if (num_devices)
		*num_devices = 0;
	file = rpost_file_get();
	if (!file)
		return NULL;
	nums = device_numbers(file, &count);
	if (!nums)
		return NULL;

	list = calloc(count + 1, sizeof(*list));
	for (i = 0; list && i < count; i++) {
		/* The device may have gone meanwhile. */
		dev = dev_get(file, nums[i]);
		if (dev)
			list[n++] = &dev->ibv;
	}
	free(nums);
	if (list && num_devices)
		*num_devices = n;
	return list;
}

/**
 * ibv_free_device_list() - release the array of ibv_get_device_list()
 * @list: the array; open contexts stay valid
 */
RPOST_API void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

/**
 * ibv_get_device_name() - get the name of a device, ibv_get_device_name(3)
 * @device: the device
 *
 * Return: a string that stays valid until exit.
 */
RPOST_API const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/**
 * ibv_get_device_guid() - get the GUID of a device, ibv_get_device_guid(3)
 * @device: the device
 *
 * Return: the node GUID in network byte order.
 */
RPOST_API __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return rpost_container_of(device, struct rpost_dev, ibv)->guid;
}

/**
 * ibv_get_device_index() - get the kernel's index, ibv_get_device_index(3)
 * @device: the device
 *
 * Return: the index, as "rdma dev" shows it, or -1 with a module that does not
 * tell it.
 */
RPOST_API int ibv_get_device_index(struct ibv_device *device)
{
	return rpost_container_of(device, struct rpost_dev, ibv)->index;
}

static void ctx_init(struct rpost_ctx *ctx, struct rpost_file *file,
		     int cmd_fd, struct rpost_dev *dev,
		     const struct rpost_query_device *query)
{
	struct verbs_context *verbs = &ctx->verbs;
	struct ibv_context *context = &verbs->context;

	ctx->file = file;
	ctx->dev = dev;
	ctx->forks = rpost_forks;
	ctx->has_odp = query->odp_general_caps & RPOST_ODP_SUPPORT;
	ctx->odp_use = rpost_odp_use(query);
	ctx->mr_flags = rpost_env_is("RDMA_POST_MR_CACHE", "0") ? RPOST_MR_NO_CACHE : 0;
	ctx->max_responder_resources = rpost_at_most_u8(query->max_qp_rd_atom);
	ctx->max_initiator_depth = rpost_at_most_u8(query->max_qp_init_rd_atom);
	pthread_mutex_init(&ctx->pd_lock, NULL);
	pthread_mutex_init(&ctx->ah_lock, NULL);
	pthread_mutex_init(&ctx->made_lock, NULL);
	ctx->made.prev = &ctx->made;
	ctx->made.next = &ctx->made;

	/* The headers' inlines return EOPNOTSUPP for operations left NULL. */
	verbs->sz = sizeof(*verbs);
	verbs->query_port = rpost_query_port;
	verbs->advise_mr = rpost_advise_mr;
	verbs->query_device_ex = rpost_query_device_ex;
	verbs->create_cq_ex = rpost_create_cq_ex;
	verbs->modify_cq = rpost_modify_cq;
	verbs->alloc_td = rpost_alloc_td;
	verbs->dealloc_td = rpost_dealloc_td;
	verbs->alloc_parent_domain = rpost_alloc_parent_domain;
	verbs->create_qp_ex = rpost_create_qp_ex;
	verbs->modify_qp_rate_limit = rpost_modify_qp_rate_limit;

	context->device = &dev->ibv;
	context->ops.poll_cq = rpost_poll_cq;
	context->ops.req_notify_cq = rpost_req_notify_cq;
	context->ops.post_send = rpost_post_send;
	context->ops.post_recv = rpost_post_recv;
	context->ops.post_srq_recv = rpost_post_srq_recv;
	context->cmd_fd = cmd_fd;
	context->num_comp_vectors = query->num_comp_vectors;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
}

/* @cmd_fd is the context's from now on, unless this fails. */
static struct rpost_ctx *ctx_over(struct rpost_file *file, int cmd_fd,
				  struct rpost_dev *dev)
{
	struct rpost_query_device query;
	struct rpost_ctx *ctx;
	int err;

	err = rpost_query_device(file->fd, dev->num, &query);
	if (err)
		return rpost_null(err);
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;

	ctx->verbs.context.async_fd = rpost_async_open(file, dev->num);
	if (ctx->verbs.context.async_fd < 0) {
		free(ctx);
		return NULL;
	}
	ctx_init(ctx, file, cmd_fd, dev, &query);
	return ctx;
}

/* Returns a descriptor that names the device, or -1 with errno. */
static int share_device(struct rpost_file *file, const struct rpost_dev *dev)
{
	struct rpost_share_device cmd = { .device = dev->num };
	int err;

	err = rpost_ioctl(file->fd, RPOST_IOC_SHARE_DEVICE, &cmd);
	return err ? rpost_fail(err) : cmd.fd;
}

static struct rpost_ctx *ctx_open(struct rpost_file *file,
				  struct rpost_dev *dev)
{
	struct rpost_ctx *ctx;
	int cmd_fd, err;

	cmd_fd = share_device(file, dev);
	if (cmd_fd < 0)
		return NULL;
	ctx = ctx_over(file, cmd_fd, dev);
	if (!ctx) {
		err = errno;
		close(cmd_fd);
		errno = err;
	}
	return ctx;
}

/**
 * ibv_open_device() - open a device, ibv_open_device(3)
 * @device: from ibv_get_device_list()
 *
 * A context takes two descriptors.  From the 129th context of a device on, a
 * context gets no asynchronous events.
 *
 * Return: a context, to be closed by ibv_close_device(), or NULL with errno:
 * ENODEV if the device has gone, EMFILE, ENOMEM.
 */
RPOST_API struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct rpost_file *file = rpost_file_get();
	struct rpost_ctx *ctx;

	if (!file)
		return NULL;
	ctx = ctx_open(file, rpost_container_of(device, struct rpost_dev, ibv));
	return ctx ? &ctx->verbs.context : NULL;
}

/**
 * ibv_import_device() - open the device of another process,
 * ibv_import_device(3)
 * @cmd_fd: duplicate of the cmd_fd of a context, which ibv_close_device() closes
 *
 * The processes share all objects that the exporter has, on all devices; those
 * that nobody destroys last until all processes have closed the file.  But
 * ibv_close_device() destroys what was made in its context, imported or not:
 * the exporter must not call it before the importers are done.  It may exit.
 *
 * @cmd_fd is no character device, which it is over uverbs: S_ISCHR() is false.
 *
 * Return: a context, or NULL with errno, without closing @cmd_fd: EBADF,
 * EOPNOTSUPP for another file's descriptor,
 * EPROTONOSUPPORT for a module that speaks another ABI, ENODEV for a file of
 * /dev/rdma_post or if the device has gone, EMFILE, ENOMEM.
 */
RPOST_API struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct rpost_query_device query;
	struct rpost_file *file;
	struct rpost_ctx *ctx;
	struct rpost_dev *dev;
	int err;

	file = rpost_file_import(cmd_fd);
	if (!file)
		return NULL;
	/* A descriptor that SHARE_DEVICE has made says which device 0 is. */
	err = rpost_query_device(cmd_fd, 0, &query);
	dev = err ? rpost_null(err) : dev_get(file, query.device);
	ctx = dev ? ctx_over(file, cmd_fd, dev) : NULL;
	if (!ctx) {
		err = errno;
		rpost_file_forget(file);
		return rpost_null(err);
	}
	ctx->imported = true;
	return &ctx->verbs.context;
}

void rpost_made_add(struct ibv_context *context, struct rpost_made *made,
		    uint32_t type, uint32_t *handle)
{
	struct rpost_ctx *ctx = rpost_ctx(context);

	made->type = type;
	made->handle = handle;
	pthread_mutex_lock(&ctx->made_lock);
	made->next = &ctx->made;
	made->prev = ctx->made.prev;
	made->prev->next = made;
	ctx->made.prev = made;
	pthread_mutex_unlock(&ctx->made_lock);
}

void rpost_made_del(struct ibv_context *context, struct rpost_made *made)
{
	struct rpost_ctx *ctx = rpost_ctx(context);

	pthread_mutex_lock(&ctx->made_lock);
	made->prev->next = made->next;
	made->next->prev = made->prev;
	pthread_mutex_unlock(&ctx->made_lock);
}

/* Destroys the kernel's object and leaves its struct to the program. */
static void end_made(struct rpost_ctx *ctx, struct rpost_made *made)
{
	struct rpost_qp *qp;

	if (made->type == RPOST_OBJ_QP) {
		qp = rpost_container_of(made, struct rpost_qp, made);
		rpost_async_del(&qp->async);
		rpost_qp_destroy_handle(qp);
		rpost_qp_detach_cntrs(qp);
		/* Sends of the queue pair no longer use address handles. */
		rpost_ah_reap(ctx);
	} else if (made->type == RPOST_OBJ_CQ) {
		rpost_cq_destroy_handle(rpost_container_of(made, struct rpost_cq,
							   made));
	} else {
		rpost_destroy_handle(ctx->file->fd, made->type, *made->handle);
	}
	if (made->type == RPOST_OBJ_SRQ)
		rpost_async_del(&rpost_container_of(made, struct rpost_srq,
						    made)->async);
	/* No object has handle 0, so that later calls fail. */
	*made->handle = 0;
}

/* Destroys users of an object before the object, or it would be EBUSY. */
static void end_all(struct rpost_ctx *ctx)
{
	static const uint32_t types[] = {
		RPOST_OBJ_QP, RPOST_OBJ_AH, RPOST_OBJ_SRQ, RPOST_OBJ_CQ,
		RPOST_OBJ_MR, RPOST_OBJ_PD,
	};
	struct rpost_made *made;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		for (made = ctx->made.next; made != &ctx->made;
		     made = made->next)
			if (made->type == types[i])
				end_made(ctx, made);
}

/**
 * ibv_close_device() - close a device, ibv_close_device(3)
 * @context: from ibv_open_device() or ibv_import_device()
 *
 * Destroys the kernel's objects that were made in the context and still exist:
 * queue pairs stop, and memory is no longer registered, in processes that have
 * imported them, too.  Their structs, and the
 * context's if there are any, are not freed, since the program may still refer
 * to them.  In a child of fork(), a context that the parent opened destroys
 * nothing, since the objects belong to the parent.
 *
 * Return: 0.
 */
RPOST_API int ibv_close_device(struct ibv_context *context)
{
	struct rpost_ctx *ctx = rpost_ctx(context);

	close(context->async_fd);
	if (ctx->made.next != &ctx->made) {
		if (ctx->forks == rpost_forks)
			end_all(ctx);
		/* Later calls fail, and reach no other file of this number. */
		close(context->cmd_fd);
		context->cmd_fd = -1;
		if (ctx->imported)
			ctx->file->fd = -1;
		return 0;
	}
	rpost_ah_forget(ctx);
	close(context->cmd_fd);
	if (ctx->imported)
		rpost_file_forget(ctx->file);
	pthread_mutex_destroy(&ctx->made_lock);
	pthread_mutex_destroy(&context->mutex);
	pthread_mutex_destroy(&ctx->ah_lock);
	pthread_mutex_destroy(&ctx->pd_lock);
	free(ctx);
	return 0;
}

struct rpost_ctx *rpost_cm_ctx(struct rpost_file *file, uint32_t num)
{
	struct rpost_dev *dev;
	struct rpost_ctx *ctx;

	pthread_mutex_lock(&file->lock);
	for (ctx = file->contexts; ctx; ctx = ctx->next)
		if (ctx->dev->num == num)
			goto out;

	dev = dev_get(file, num);
	ctx = dev ? ctx_open(file, dev) : NULL;
	if (ctx) {
		ctx->next = file->contexts;
		file->contexts = ctx;
	}
out:
	pthread_mutex_unlock(&file->lock);
	return ctx;
}

/**
 * rdma_get_devices() - open the RDMA devices, rdma_get_devices(3)
 * @num_devices: set to the number of devices unless it is NULL
 *
 * Connection ids use these contexts as id->verbs.  The contexts stay open, and
 * the program must not close them.
 *
 * Return: a NULL-terminated array, to be released by rdma_free_devices(), or
 * NULL with errno: ENODEV if there are none, else as ibv_get_device_list().
 */
RPOST_API struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct rpost_file *file;
	struct ibv_context **list;
	struct rpost_ctx *ctx;
	uint32_t *nums, count, i;
	int n = 0;

	if (num_devices)
		*num_devices = 0;
	file = rpost_cm_file_get();
	if (!file)
		return NULL;
	nums = device_numbers(file, &count);
	if (!nums)
		return NULL;
	if (!count) {
		free(nums);
		return rpost_null(ENODEV);
	}

	list = calloc(count + 1, sizeof(*list));
	for (i = 0; list && i < count; i++) {
		ctx = rpost_cm_ctx(file, nums[i]);
		if (ctx)
			list[n++] = &ctx->verbs.context;
	}
	free(nums);
	if (list && num_devices)
		*num_devices = n;
	return list;
}

/**
 * rdma_free_devices() - release the array of rdma_get_devices()
 * @list: the array; the contexts stay open
 */
RPOST_API void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

struct ibv_pd *rpost_default_pd_get(struct rpost_ctx *ctx)
{
	struct ibv_pd *pd;

	pthread_mutex_lock(&ctx->pd_lock);
	if (!ctx->default_pd)
		ctx->default_pd = ibv_alloc_pd(&ctx->verbs.context);
	pd = ctx->default_pd;
	if (pd)
		ctx->default_pd_users++;
	pthread_mutex_unlock(&ctx->pd_lock);
	return pd;
}

void rpost_default_pd_put(struct rpost_ctx *ctx)
{
	pthread_mutex_lock(&ctx->pd_lock);
	/* If memory regions use it (EBUSY), it stays for the next id. */
	if (!--ctx->default_pd_users && !ibv_dealloc_pd(ctx->default_pd))
		ctx->default_pd = NULL;
	pthread_mutex_unlock(&ctx->pd_lock);
}

/**
 * ibv_fork_init() - prepare for fork(), ibv_fork_init(3)
 *
 * There is nothing to do.  The kernel pins registered memory, and since Linux
 * 5.12 fork() copies pinned pages for the child at once, so that the parent
 * keeps its pages.  The module does not run on older kernels.
 *
 * Return: 0.
 */
RPOST_API int ibv_fork_init(void)
{
	return 0;
}

/**
 * ibv_is_fork_initialized() - tell whether fork() is safe,
 * ibv_is_fork_initialized(3)
 *
 * Return: IBV_FORK_UNNEEDED, see ibv_fork_init().
 */
RPOST_API enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/**
 * ibv_dontfork_range() - keep memory out of a child of fork()
 * @base: first byte
 * @size: bytes
 *
 * There is nothing to do, see ibv_fork_init().
 *
 * Return: 0.
 */
RPOST_API int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

/**
 * ibv_dofork_range() - undo ibv_dontfork_range()
 * @base: first byte
 * @size: bytes
 *
 * Return: 0.
 */
RPOST_API int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

/**
 * ibv_static_providers() - name the providers of a statically linked program
 * @unused: NULL
 *
 * There is nothing to do, since the library has no providers.
 */
RPOST_API void ibv_static_providers(void *unused, ...)
{
	(void)unused;
}
