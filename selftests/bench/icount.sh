#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/icount.sh [-u] [KERNEL...]
#
# Counts the instructions that the guest executes for a work request of 64 bytes,
# from the call that posts it until its completion is there, where all of a host
# with one CPU is counted: the program, the kernel and the other end. Unlike times
# they are the same in every run. Prints TAP: more than 3 % above what is expected
# by selftests/bench/baseline.json fails. By default on 6.1.
#
#   -u   put these counts into baseline.json

set -euo pipefail
. "$(dirname "$0")/lib.sh"
update=''
while getopts hu opt; do
	case $opt in
	u) update=1 ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1
need jq
out=$build_dir/bench/icount
mkdir -p "$out"

# A program that polls has the only CPU until the scheduler's tick; that the
# kernel's loop may poll is because it lets others run.
for op in write send read; do
	echo "sof latency op=$op size=64 mode=sleep ops=1000"
done >"$out/cases"

count() {
	local kernel=$1
	bench_guest "$kernel" "icount.$kernel" "$out/cases" 1 -I -t 1200 |
		sed 's/^/# /'
	jq -s --arg kernel "$kernel" 'map({
			key: "\($kernel) \(.column) \(.line | capture("op=(?<op>[a-z]+)").op)",
			value: .result.p50
		}) | from_entries' "$build_dir/vm/icount.$kernel/out/results.jsonl" \
		>"$out/$kernel.json"
}

bench_build "$@"
baseline=$here/baseline.json
[ -e "$baseline" ] || echo '{}' >"$baseline"
echo "TAP version 13"
n=0 failed=0
for kernel; do
	count "$kernel"
	if [ -n "$update" ]; then
		jq -s 'add' "$baseline" "$out/$kernel.json" >"$out/new"
		cp "$out/new" "$baseline"
	fi
	# What the others need is not the project's.  A kernel that is not the
	# baseline's may do more or less itself, in the loop inside it as well.
	lines=$n
	while read -r verdict text; do
		n=$((n + 1))
		[ "$verdict" = ok ] || failed=1
		echo "${verdict/_/ } $n bench.icount.$text"
	done < <(jq -r --slurpfile baseline "$baseline" '
		. as $now | to_entries[] | select(.key | test(" ours "))
		| .value as $value | $baseline[0][.key] as $base
		| (.key | split(" ")) as [$kernel, $column, $op]
		| "\($kernel) floor \($op)" as $floor
		| $baseline[0][$floor] as $base_floor
		| (if $base and $base_floor and $now[$floor]
		   then $base + $now[$floor] - $base_floor
		   else null end) as $expected
		| (if $value and $expected and $value <= $expected * 1.03
		   then "ok" else "not_ok" end)
		  + " \($kernel).\($op) # \($value) instructions"
		  + ", expected \($expected // "none")"
		  + ", system \($now["\($kernel) system \($op)"] // "none")"
		  + ", kernel only \($now[$floor] // "none")"
		' "$out/$kernel.json")
	[ "$(jq length "$out/$kernel.json")" = 9 ] || failed=1
	[ $((n - lines)) = 3 ] || failed=1
done
echo "1..$n"
exit "$failed"
