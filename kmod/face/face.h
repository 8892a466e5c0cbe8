/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device node, its commands, and what programs can ask.
 */
#ifndef RPOST_FACE_H
#define RPOST_FACE_H

#include "base/base.h"

struct file;
struct seq_file;

long rpost_file_ioctl(struct rpost_file *file, struct file *filp, unsigned int nr,
		      unsigned long arg);
u32 rpost_share_device(struct file *filp);
void rpost_file_fdinfo(struct seq_file *s, struct rpost_file *file);

#endif /* RPOST_FACE_H */
