#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/docs.sh [options] [KERNEL...]
#
# Measures what the documents show, puts it into Documentation/performance/results.json with
# the commit, the date, the kernel and the host's CPU, and writes all tables and figures of the
# documents from that file. By default on 6.1, 6.12 and 7.2. Counts do not depend on the load of
# the machine; times need one that is idle.
#
#   -b GUESTS      count in so many guests, 9 by default
#   -r ROUNDS      of times and of tenants, 3 by default
#   -o "PART ..."  measure only these: counts, inline, valkey, tenants,
#                  buffers (6.1 only), times
#   -n             measure nothing: tables and figures from results.json
#   -d             measure and write nothing: print how the tables differ from results.json

# The parts are functions that are called by name.
# shellcheck disable=SC2317

set -euo pipefail
. "$(dirname "$0")/lib.sh"
guests=9 rounds=3 parts='counts inline valkey tenants buffers times' diff=''
while getopts hb:r:o:nd opt; do
	case $opt in
	b) guests=$OPTARG ;;
	r) rounds=$OPTARG ;;
	o) parts=$OPTARG ;;
	n) parts='' ;;
	d) parts='' diff=1 ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1 6.12 7.2
need jq
cd "$top_dir"
out=$build_dir/bench/docs results=Documentation/performance/results.json
mkdir -p "$out"

# counts KERNEL
counts() {
	"$here/icount.sh" -d -b "$guests" "$1" >&2
	cp "$build_dir/bench/icount/$1.json" "$out/counts"
}

# inline KERNEL: what the program, the call and the module take
inline() {
	"$here/icount.sh" -d -e -b "$guests" "$1" >&2
	cp "$build_dir/bench/icount/$1.inline.json" "$out/inline"
}

# Two programs with a rate write 64 KiB again and again, at 1 and at 3 MB/s; a third one writes
# by itself, and then beside them.
#
# tenants KERNEL
tenants() {
	local dir=$build_dir/vm/tenants.$1
	bench_build "$1"
	build_all tools
	"$vm_dir/run.sh" -k "$1" -I -m 2G -t 1200 -o "$dir" "${bench_files[@]}" \
		-f "$build_dir/bin/rdma-post:/opt/bin/rdma-post" -f "$here/tenants-guest.sh" -- \
		"${bench_env[@]}" PATH=/opt/bin:/sbin:/bin:/usr/sbin:/usr/bin \
		sh -c "./tenants-guest.sh 10.0.0.1 $rounds >/out/results" >&2
	bench_jq 'tenants | lines(1)' "$dir/out/results" >"$out/tenants"
}

# valkey KERNEL: requests in a second, by the clock that counts instructions
valkey() {
	selftests/interop/interop.sh -I -v -c 'valkey_1 valkey_20 valkey_pipeline' "$1" >"$out/log" ||
		{ cat "$out/log" >&2 && return 1; }
	bench_jq 'valkey | lines(1)' -R "$out/log" >"$out/valkey"
}

# buffers KERNEL: what libfabric and UCX take with each cache
buffers() {
	selftests/interop/interop.sh -I -v -l rdma_post -c '*_buffers' "$1" >"$out/log" ||
		{ cat "$out/log" >&2 && return 1; }
	bench_jq 'buffers | lines(1)' -R "$out/log" >"$out/buffers"
}

# times KERNEL
times() {
	"$here/bench.sh" -k "$1" -q -r "$rounds" >&2
	cp "$build_dir/bench/$1/results.json" "$out/times"
}

# put PART KERNEL: put what it has measured into results.json
put() {
	local how=(--arg rounds "$rounds")
	[[ $1 != @(counts|inline) ]] || how=(--arg guests "$guests")
	[[ $1 != @(buffers|valkey) ]] || how=()
	bench_jq "put(\"$1 $2\"; \$ARGS.named) | lines(3)" --arg commit "$commit" \
		--arg date "$(date -u +%F)" --arg kernel "$(cat "$cache_dir/kernels/$2/release")" \
		--arg host "$(nproc) x $(sed -n '/^model name/{s/.*: *//p;q}' /proc/cpuinfo)" \
		"${how[@]}" "$results" "$out/$1" >"$out/results.json"
	cp "$out/results.json" "$results"
}

# The last one that changed the module or the library. What is not committed is measured, too.
commit=$(git log -1 --abbrev=12 --format=%h -- kmod uapi userlib)
git diff --quiet HEAD -- kmod uapi userlib || commit+=+
for part in $parts; do
	for kernel; do
		[ "$part" != buffers ] || [ "$kernel" = 6.1 ] || continue
		"$part" "$kernel"
		put "$part" "$kernel"
	done
done

for document in performance requests connections any-memory registration-cache tenants; do
	rst=Documentation/$document.rst
	bench_jq "input | docs(\"$document\")" "$results" >"$out/tables"
	awk -f selftests/tools/replace.awk "$out/tables" "$rst" >"$out/$document.rst"
	if [ -n "$diff" ]; then
		diff -u "$rst" "$out/$document.rst" || status=1
	else
		cp "$out/$document.rst" "$rst"
	fi
done
[ -z "$diff" ] || exit "${status-0}"
need gnuplot
for plot in ratios instructions-size instructions-batch; do
	bench_jq "input | plot_${plot/-/_}" "$results" | gnuplot >"$out/$plot.svg"
	cp "$out/$plot.svg" Documentation/performance/
done
