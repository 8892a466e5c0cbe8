#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/bench.sh [options]
#
# Measures librdma_post against the system's librdmacm and libibverbs and against
# loops in the kernel, all in one guest in turns, and prints a table with the
# targets. build/bench/KERNEL gets results.jsonl (each measurement), results.json
# (medians, quartiles, ratios), table.txt and, with gnuplot, plots as *.svg.
#
#   -k KERNEL   6.1 by default
#   -q          only the cases that have a target
#   -c REGEX    only the cases that match, which selftests/bench/cases lists
#   -r ROUNDS   5 by default
#   -H ADDR     without a guest: on this host, as root, with the modules rdma_post
#               and perhaps floor loaded; ADDR is an address of its RDMA device
#   -a          measure nothing: the table and the plots of what there is
#
# The machine should have nothing else to do.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel=6.1 sets='quick|full' match=. rounds=5 host='' measure=1
while getopts hk:qc:r:H:a opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	q) sets=quick ;;
	c) match=$OPTARG ;;
	r) rounds=$OPTARG ;;
	H) host=$OPTARG kernel=host ;;
	a) measure='' ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || { usage >&2 && exit 2; }
need jq column
out=$build_dir/bench/$kernel
mkdir -p "$out"
status=0

list_cases() {
	sed -nE "/^#/d;s/^($sets) //p" "$here/cases" | grep -E -- "$match" || true
}

# What takes half a second takes longer with many connections.
run_guest() {
	local limit=$((300 + rounds * $(wc -l <"$out/cases") * 12))
	bench_guest "$kernel" "bench.$kernel" "$out/cases" "$rounds" \
		-m 2G -t "$limit" || status=$?
	cp "$build_dir/vm/bench.$kernel/out/results.jsonl" "$out/"
}

run_host() {
	BENCH=$build_dir/bench/bench RUN=$build_dir/bin/rdma-post-run ADDR=$host \
		LIMIT=300 "$here/guest.sh" "$rounds" "$out/cases" \
		"$out/results.jsonl" || status=$?
}

if [ -n "$measure" ]; then
	if [ -n "$host" ]; then bench_build; else bench_build "$kernel"; fi
	list_cases >"$out/cases"
	[ -s "$out/cases" ] || die "no such case"
	rm -f "$out/results.jsonl"
	if [ -n "$host" ]; then run_host; else run_guest; fi
fi

jq -s -f "$here/analyze.jq" "$out/results.jsonl" >"$out/results.json"
first=false
[[ $kernel != *6.1 ]] || first=true
jq -r --slurpfile targets "$here/targets.json" --argjson first "$first" \
	-f "$here/table.jq" "$out/results.json" |
	column -t -s $'\t' >"$out/table.txt"
cat "$out/table.txt"
if have gnuplot; then
	"$here/plot.sh" "$out"
else
	say "no plots: gnuplot is not installed (selftests/vm/deps.sh)"
fi
exit "$status"
