/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The text format of Prometheus. */
#ifndef PROMETHEUS_H
#define PROMETHEUS_H

#include "open_files.h"

void prometheus_print(const struct open_files *all);

#endif /* PROMETHEUS_H */
