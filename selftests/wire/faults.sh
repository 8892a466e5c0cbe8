#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/wire/faults.sh [KERNEL...]
#
# The faults that take too long for make check, by default on 6.1 and 7.2: a
# thousand programs killed, more at a time; 600 connections of a device that is
# removed; a peer that stands still for a minute. Prints TAP.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir"

[ $# -gt 0 ] || set -- 6.1 7.2
status=0
for kernel; do
	"$vm_dir/kmod.sh" "$kernel"
	driver=()
	[[ $kernel == debug* ]] || driver=('RPOST_TEST_UNBIND=rmmod rdma_rxe'
		'RPOST_TEST_BIND=modprobe rdma_rxe && rdma link add rxe0 type rxe netdev dummy0')
	"$vm_dir/run.sh" -k "$kernel" -t 1200 -m 2G -o "$build_dir/vm/faults.$kernel" \
		-f selftests/run_tests.sh -f "$build_dir/selftests/faults" \
		-f "$build_dir/selftests/storm" -f "$build_dir/selftests/unreachable" \
		-f "$build_dir/selftests/removal_many" -- \
		env 'RPOST_TEST_REMOVE=rdma link del rxe0' \
		'RPOST_TEST_ADD=rdma link add rxe0 type rxe netdev dummy0' \
		"${driver[@]}" RPOST_TEST_STORM=1000 RPOST_TEST_WIDTH=100 \
		RPOST_TEST_CONNECTIONS=600 \
		./run_tests.sh ./faults ./unreachable ./storm ./removal_many ||
		status=1
	selftests/wire/wire.sh -k "$kernel" -l || status=1
done
exit "$status"
