#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/wire/faults.sh [KERNEL...]
#
# Tests the faults that take too long for make check-all, by default on 6.1 and
# 7.2: a thousand programs are killed, 100 at a time; a device with 600
# connections is removed; a host does not answer, over both libraries; a peer
# pauses for a minute. Prints TAP.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir"

# The command that adds a neighbour entry for a host that does not exist.
silent='ip neigh add 10.0.0.99 lladdr 02:00:00:00:00:99 dev dummy0 nud permanent'

# Compare the libraries with a silent host. This guest is nearly idle and runs
# beside the other one, for about as long.
silent_host() {
	"$vm_dir/run.sh" -k "$1" -t 900 -o "$build_dir/vm/faults-silent.$1" \
		-f "$build_dir/selftests/api" -f selftests/api/compare.sh -- \
		env RPOST_TEST_SILENT=10.0.0.99 \
		sh -c "$silent && ./compare.sh ./api silent"
}

[ $# -gt 0 ] || set -- 6.1 7.2
status=0
for kernel; do
	"$vm_dir/kmod.sh" "$kernel"
	# Not on debug kernels, see kernel_tests() in check.sh.
	driver=()
	[[ $kernel == debug* ]] || driver=('RPOST_TEST_UNBIND=rmmod rdma_rxe'
		'RPOST_TEST_BIND=modprobe rdma_rxe && rdma link add rxe0 type rxe netdev dummy0')
	silent_host "$kernel" >"$build_dir/vm/faults-silent.log" 2>&1 &
	"$vm_dir/run.sh" -k "$kernel" -t 1200 -m 2G -o "$build_dir/vm/faults.$kernel" \
		-f selftests/tools/run_tests.sh -f "$build_dir/selftests/faults" \
		-f "$build_dir/selftests/storm" -f "$build_dir/selftests/closed" \
		-f "$build_dir/selftests/unreachable" \
		-f "$build_dir/selftests/removal_many" -- \
		env 'RPOST_TEST_REMOVE=rdma link del rxe0' \
		'RPOST_TEST_ADD=rdma link add rxe0 type rxe netdev dummy0' \
		"${driver[@]}" RPOST_TEST_STORM=1000 RPOST_TEST_WIDTH=100 \
		RPOST_TEST_CONNECTIONS=600 RPOST_TEST_SILENT=10.0.0.99 \
		sh -c "$silent && exec ./run_tests.sh \
			./faults ./unreachable ./storm ./closed ./removal_many" ||
		status=1
	wait $! || status=1
	cat "$build_dir/vm/faults-silent.log"
	selftests/wire/wire.sh -k "$kernel" -l || status=1
done
exit "$status"
