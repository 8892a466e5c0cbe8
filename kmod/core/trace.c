// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints.
 */
#define CREATE_TRACE_POINTS
#include "core/trace.h"
