#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/icount.sh [-u] [-b GUESTS] [KERNEL...]
#
# Counts the instructions that the guest executes for an operation, from the call
# that starts it until its completion is there, where all of a host with one CPU is
# counted: the program, the kernel and the other end. Unlike times they do not
# depend on what else the machine does. Prints TAP: a case fails that takes more
# than selftests/bench/baseline.json allows, or that was not counted. By default
# on 6.1.
#
#   -b GUESTS   how many guests to count in, each a little different: their median.
#               By default 9 with -u, else 1, and 3 where a case would fail
#   -u          put these counts into baseline.json
#
# BASELINE is another file to compare with, instead of baseline.json.

set -euo pipefail
. "$(dirname "$0")/lib.sh"
update='' guests=''
while getopts hub: opt; do
	case $opt in
	u) update=1 ;;
	b) guests=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1
guests=${guests:-${update:+9}}
need jq
baseline=${BASELINE:-$here/baseline.json}
out=$build_dir/bench/icount
mkdir -p "$out"

# Name, columns, whose count says what the kernel itself does more or less, and what
# bench is told. A program that polls has the only CPU until the scheduler takes it
# away, and what it does there is no work: these sleep.
cat >"$out/list" <<-END
	write sof floor latency op=write size=64 mode=sleep ops=4000
	send sof floor latency op=send size=64 mode=sleep ops=4000
	read sof floor latency op=read size=64 mode=sleep ops=4000
	batch sof floor rate op=write size=64 depth=64 batch=16 mode=sleep ops=4800
	register-4K so system register size=4K ops=200
	register-1M so system register size=1M ops=20
	connect so none connect api=ep ops=20
	write-1000 sof floor latency op=write size=64 mode=sleep conns=1000 ops=4000
END
cut -d ' ' -f 2,4- "$out/list" >"$out/cases"

# What the kernel's threads do, as rxe's on 6.12 and later, is done sooner or later
# by what came before: command lines of other lengths are enough to change that.
#
# count KERNEL FIRST LAST: in guests FIRST to LAST, after those before
count() {
	local kernel=$1 first=$2 guests=$3 guest dir results=()
	rm -f "$out/$kernel.json"
	for ((guest = 1; guest <= guests; guest++)); do
		dir=icount.$kernel.$guest
		results+=("$build_dir/vm/$dir/out/results.jsonl")
		[ "$guest" -ge "$first" ] || continue
		rm -rf "$build_dir/vm/$dir/out"
		bench_guest "$kernel" "$dir" "$out/cases" 1 -I -m 2G -t 1200 \
			-a "bench=$(printf '%0*d' $((7 * guest)) 0)" |
			sed 's/^/# /' || failed=1
	done
	jq -s --arg kernel "$kernel" --argjson guests "$guests" --rawfile list "$out/list" \
		-f "$here/icount.jq" "${results[@]}" >"$out/$kernel.json" || failed=1
}

# put KERNEL: its counts into the baseline, if they are all there
put() {
	jq -e --rawfile list "$out/list" '
		length == ($list | [scan("(?m)^\\S+ (\\S+)")[0] | length] | add)
		' "$out/$1.json" >/dev/null || die "$1: not everything was counted"
	[ -e "$baseline" ] || echo '{}' >"$baseline"
	jq -s -S --arg kernel "$1" '
		(.[0] | with_entries(select(.key | startswith("\($kernel) ") | not)))
		+ .[1]' "$baseline" "$out/$1.json" >"$out/new"
	cp "$out/new" "$baseline"
}

verdicts() {
	jq -r --arg kernel "$1" --rawfile list "$out/list" \
		--slurpfile baseline "$baseline" -f "$here/verdict.jq" "$out/$1.json"
}

cases=$(wc -l <"$out/list")
bench_build "$@"
echo "TAP version 13"
echo "1..$((cases * $#))"
n=0 failed=0
for kernel; do
	count "$kernel" 1 "${guests:-1}"
	if [[ -z $guests && $(verdicts "$kernel") == *not_ok* ]]; then
		verdicts "$kernel" | sed 's/^/# in one guest: /'
		count "$kernel" 2 3
	fi
	if [ -n "$update" ]; then
		[ "$failed" = 0 ] || die "$kernel: not everything was counted"
		put "$kernel"
	fi
	while read -r verdict text; do
		n=$((n + 1))
		[ "$verdict" = ok ] || failed=1
		echo "${verdict/_/ } $n bench.icount.$text"
	done < <(verdicts "$kernel")
done
[ "$n" = $((cases * $#)) ] || failed=1
exit "$failed"
