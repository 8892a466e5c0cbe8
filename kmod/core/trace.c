// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the tracepoints.
 */
#define CREATE_TRACE_POINTS
#include "core/trace.h"
