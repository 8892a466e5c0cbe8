# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Common functions of the benchmark's scripts; sourced by them.

. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
here=$top_dir/selftests/bench

# bench_jq EXPRESSION [ARGUMENT...]: print what it gives with the functions of bench.jq
bench_jq() { jq -nr -L "$here" "include \"bench\"; $1" "${@:2}"; }

# bench_build [KERNEL...]: build the programs, and the modules for these kernels
bench_build() {
	local kernel
	make -s -C "$top_dir" lib >&2
	make -s -C "$here" OUT="$build_dir/bench" >&2
	for kernel; do
		"$vm_dir/kmod.sh" "$kernel" >&2
		"$vm_dir/kmod.sh" -s "$here/floor" "$kernel" >&2
	done
}

# expand_cases SET COLUMN: print the cases of these sets, with braces expanded
expand_cases() {
	local line
	grep -v '^#' "$here/cases" | while IFS= read -r line; do
		line=${line//\\ / }
		eval "printf '%s\n' ${line// /\\ }"
	done | sed -nE "s/^($1) $2//p"
}

# The time limit of a measurement in seconds. Most take less than one; a
# thousand connections on a busy machine take a minute.
measure_limit=120

# The files that a guest needs for either end, and the environment of guest.sh.
bench_files=(
	-f "$here/guest.sh" -f "$here/serve.sh" -f "$build_dir/bench/bench"
	-f "$build_dir/bin/rdma-post-run:/opt/bin/rdma-post-run"
	-f "$build_dir/lib/rdma_post:/opt/lib/rdma_post"
)
bench_env=(env BENCH=/root/bench RUN=/opt/bin/rdma-post-run "LIMIT=$measure_limit")

# bench_guest KERNEL NAME CASES ROUNDS [OPTION...]: measure in a guest, with
# options of run.sh; the results are in build/vm/NAME/out
bench_guest() {
	local kernel=$1 name=$2 cases=$3 rounds=$4 serve=()
	shift 4
	! grep -q 'peer=self' "$cases" || serve=(./serve.sh 10.0.0.1)
	"$vm_dir/run.sh" -k "$kernel" "$@" -o "$build_dir/vm/$name" \
		-i "$build_dir/floor-$kernel/floor.ko" \
		"${bench_files[@]}" -f "$cases:/root/cases" \
		-- "${bench_env[@]}" ADDR=10.0.0.1 "${serve[@]}" \
		./guest.sh "$rounds" cases /out/results.jsonl
}

# bench_pair KERNEL NAME CASES ROUNDS [OPTION...]: measure between two guests;
# the results are in build/vm/NAME/b/out
bench_pair() {
	local kernel=$1 name=$2 cases=$3 rounds=$4
	shift 4
	"$vm_dir/pair.sh" -k "$kernel" "$@" -o "$build_dir/vm/$name" \
		"${bench_files[@]}" -f "$cases:/root/cases" \
		-a "${bench_env[*]} ./serve.sh 10.0.1.1 \
			sh -c 'vm-sync serving && vm-sync measured'" \
		-b "vm-sync serving || exit
			status=0
			${bench_env[*]} ADDR=10.0.1.2 PEER=10.0.1.1 \
				./guest.sh $rounds cases /out/results.jsonl || status=\$?
			vm-sync measured
			exit \$status"
}
