#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/curves.sh [-b GUESTS] [KERNEL...]
#
# Counts instructions, as icount.sh does, for messages of several sizes and for calls
# that post several work requests: the curves of Documentation/performance. Writes them to
# Documentation/performance/curves.tsv. Does not depend on the load of the machine. By
# default on 6.1, where guests differ by 2 % at most.
#
#   -b GUESTS   take the median of so many guests, each a little different

set -euo pipefail
. "$(dirname "$0")/lib.sh"
guests=1
while getopts hb: opt; do
	case $opt in
	b) guests=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1
need jq
out=$build_dir/bench/curves
mkdir -p "$out"

# A curve, a number on its x axis, and the arguments of bench.
for op in write send read; do
	for size in 64 256 1024 4096 16384 65536; do
		echo "$op $size latency op=$op size=$size mode=sleep ops=$((size > 4096 ? 200 : 1000))"
	done
done >"$out/list"
for batch in 1 2 4 8 16 32 64; do
	echo "batch $batch rate op=write size=64 depth=64 batch=$batch mode=sleep ops=4800"
done >>"$out/list"
cut -d ' ' -f 3- "$out/list" | sed 's/^/sof /' >"$out/cases"

bench_build "$@"
for kernel; do
	results=()
	for ((guest = 1; guest <= guests; guest++)); do
		dir=curves.$kernel.$guest
		rm -rf "$build_dir/vm/$dir/out"
		bench_guest "$kernel" "$dir" "$out/cases" 1 -I -m 2G -t 1200 \
			-a "bench=$(printf '%0*d' $((7 * guest)) 0)" >&2
		results+=("$build_dir/vm/$dir/out/results.jsonl")
	done
	jq -s -r --arg kernel "$kernel" --rawfile list "$out/list" '
		def median: sort | .[length / 2 | floor];
		. as $all
		| $list | scan("(\\S+) (\\S+) (.+)") as [$curve, $x, $line]
		| [$kernel, $curve, $x] + [("system", "ours", "floor") as $column
			| [$all[] | select(.line == $line and .column == $column)
			   | .result | .p50 // .mean | select(. != null)] | median | round]
		| @tsv' "${results[@]}"
done >"$out/rows"
{
	printf 'kernel\tcurve\tx\tsystem\tours\tfloor\n'
	cat "$out/rows"
} >"$top_dir/Documentation/performance/curves.tsv"
