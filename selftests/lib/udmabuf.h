/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UDMABUF_H
#define UDMABUF_H

#include <stddef.h>

/*
 * Return a dma-buf of up to 1024 pages of ordinary memory, each behind the one that
 * follows it in the file, so that no two are one piece; or -1 and the reason.
 */
int udmabuf(size_t bytes, const char **reason);

#endif /* UDMABUF_H */
