# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# What the scripts of the benchmark share; sourced by them.

. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
here=$top_dir/selftests/bench

# bench_build [KERNEL...]: also the modules for guests with these
bench_build() {
	local kernel
	make -s -C "$top_dir" lib >&2
	make -s -C "$here" OUT="$build_dir/bench" >&2
	for kernel; do
		"$vm_dir/kmod.sh" "$kernel" >&2
		"$vm_dir/kmod.sh" -s "$here/floor" "$kernel" >&2
	done
}

# bench_guest KERNEL NAME CASES ROUNDS [OPTION...]: measures in a guest, with
# options of run.sh; the results are in build/vm/NAME/out
bench_guest() {
	local kernel=$1 name=$2 cases=$3 rounds=$4
	shift 4
	"$vm_dir/run.sh" -k "$kernel" "$@" -o "$build_dir/vm/$name" \
		-i "$build_dir/floor-$kernel/floor.ko" \
		-f "$here/guest.sh" -f "$cases" -f "$build_dir/bench/bench" \
		-f "$build_dir/bin/rdma-post-run:/opt/bin/rdma-post-run" \
		-f "$build_dir/lib/rdma_post:/opt/lib/rdma_post" \
		-- env BENCH=/root/bench RUN=/opt/bin/rdma-post-run ADDR=10.0.0.1 \
		LIMIT=300 ./guest.sh "$rounds" cases /out/results.jsonl
}
