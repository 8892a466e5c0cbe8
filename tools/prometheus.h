/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The text format of Prometheus. */
#ifndef PROMETHEUS_H
#define PROMETHEUS_H

#include "sample.h"

void prometheus_print(const struct sample *now);

#endif /* PROMETHEUS_H */
