#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/bench.sh [options]
#
# Compares librdma_post with the system's librdmacm and libibverbs and with
# loops in the kernel, all in one guest in turns. Prints a table. Writes to
# build/bench/KERNEL: results.jsonl (each measurement), results.json (medians,
# quartiles, ratios) and table.txt. If a measurement fails or does not end in
# time, names it below the table, and the exit status is not 0.
#
#   -k KERNEL   6.1 by default
#   -s SET      the cases of this set in selftests/bench/cases: quick (those of
#               the documents), full, scale (with 1 to 1,000 connections and 1 to 64
#               processes), smoke (a few, short), pair (for -2 and -P). Several
#               with | between them, "quick|full" by default. Other sets than
#               these two have a separate directory, KERNEL.SET
#   -q          -s quick
#   -c REGEX    only the cases that match
#   -r ROUNDS   5 by default
#   -e ENGINE   on rdmasim, which works in this context (inline, softirq, hardirq
#               or work), instead of rxe. It has no user-space provider: without
#               the system's libraries. Results in build/bench/KERNEL.ENGINE
#   -a          measure nothing: the table of earlier results
#
# Between two hosts, with the same library at both ends and no loops in the
# kernel; "-s pair" unless told otherwise:
#
#   -2          two guests joined by a wire; results in build/bench/KERNEL.pair
#
# Without guests, as root, with the module rdma_post loaded:
#
#   -H ADDR     on this host, with the module floor, too, if it is loaded; ADDR
#               is an address of its RDMA device
#   -S ADDR     this host is the peer of another's -P, until it is interrupted;
#               ADDR is an address of its RDMA device. Ports 18515 and 18516
#   -P ADDR     from this host to the one that runs with -S ADDR; results in
#               build/bench/host.pair
#
# Run it on an idle machine.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel=6.1 sets='' match=. rounds=5 host='' peer='' serve_at='' pair='' measure=1
engine=''
while getopts hk:s:qc:r:e:H:S:P:2a opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	s) sets=$OPTARG ;;
	q) sets=quick ;;
	c) match=$OPTARG ;;
	r) rounds=$OPTARG ;;
	e) engine=$OPTARG ;;
	H) host=$OPTARG kernel=host ;;
	S) serve_at=$OPTARG kernel=host ;;
	P) peer=$OPTARG pair=1 kernel=host ;;
	2) pair=1 ;;
	a) measure='' ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || { usage >&2 && exit 2; }
need jq

if [ -n "$pair" ]; then
	out=$kernel.pair sets=${sets:-pair}
else
	sets=${sets:-quick|full} out=$kernel
	case $sets in
	quick | full | 'quick|full') ;;
	*) out+=.${sets//|/-} ;;
	esac
fi
out=$build_dir/bench/$out${engine:+.$engine}
status=0

# Cases with many connections take up to 12 s in each round.
run_guest() {
	local name=bench.$kernel from results limit sim=()
	limit=$((300 + rounds * $(wc -l <"$out/cases") * 12))
	if [ -n "$pair" ]; then
		name+=.pair from=b/out
		bench_pair "$kernel" "$name" "$out/cases" "$rounds" \
			-m 1G -t "$limit" || status=$?
	else
		from=out
		[ -z "$engine" ] || sim=(-n sim -P "engine=$engine")
		bench_guest "$kernel" "$name" "$out/cases" "$rounds" \
			-m 2G -t "$limit" "${sim[@]}" || status=$?
	fi
	results=$build_dir/vm/$name/$from/results.jsonl
	[ ! -e "$results" ] || cp "$results" "$out/"
	[ ! -e "$results.now" ] || cp "$results.now" "$out/"
}

on_host() {
	BENCH=$build_dir/bench/bench RUN=$build_dir/bin/rdma-post-run \
		LIMIT=$measure_limit "$@"
}

run_host() {
	local serve=()
	! grep -q 'peer=self' "$out/cases" || serve=("$here/serve.sh" "$host")
	ADDR=$host PEER=$peer on_host "${serve[@]}" "$here/guest.sh" "$rounds" \
		"$out/cases" "$out/results.jsonl" || status=$?
}

# Print the measurements that failed, and the one that did not end.
failures() {
	jq -r 'select(.result == null) | "\(.column): \(.line): \(.error)"' \
		"$out/results.jsonl"
	[ ! -s "$out/results.jsonl.now" ] ||
		echo "$(cat "$out/results.jsonl.now"): was under way at the end"
}

if [ -n "$serve_at" ]; then
	bench_build
	on_host exec "$here/serve.sh" "$serve_at"
fi

mkdir -p "$out"
if [ -n "$measure" ]; then
	if [ "$kernel" = host ]; then bench_build; else bench_build "$kernel"; fi
	expand_cases "$sets" "${engine:+s}" | grep -E -- "$match" >"$out/cases" || true
	[ -s "$out/cases" ] || die "no such case"
	rm -f "$out"/results.jsonl*
	if [ "$kernel" = host ]; then run_host; else run_guest; fi
fi
[ -s "$out/results.jsonl" ] || die "nothing was measured"

bench_jq 'times | lines(1)' "$out/results.jsonl" >"$out/results.json"
bench_jq 'input | times_table' "$out/results.json" | tee "$out/table.txt"
failures >"$out/failures"
if [ -s "$out/failures" ]; then
	sed 's/^/bench: failed: /' "$out/failures" >&2
	[ "$status" != 0 ] || status=1
fi
exit "$status"
