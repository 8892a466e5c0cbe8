#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/icount.sh [-u] [-d] [-e] [-b GUESTS] [KERNEL...]
#
# Counts the instructions that a guest executes for an operation, from the call
# that starts it until its completion. The guest has one CPU, so the count
# includes the program, the kernel and the other end. Unlike times, it does not
# depend on the load of the machine. Prints TAP: a case fails if it takes more
# than selftests/bench/baseline.json allows, or if it was not counted. By
# default on 6.1. The counts are in build/bench/icount/KERNEL.json.
#
#   -b GUESTS   take the median of so many guests, each a little different. By
#               default 9 with -u, else 1, and 3 where a case would fail
#   -d          count what only the documents show, too, but judge nothing (docs.sh)
#   -e          on rdmasim, which does the work in the post: what is left is the program,
#               the call and the module. Polled. The counts are in KERNEL.inline.json
#   -u          put these counts into baseline.json
#
# BASELINE is another file to compare with, instead of baseline.json.

set -euo pipefail
. "$(dirname "$0")/lib.sh"
update='' guests='' docs='' engine='' device=()
while getopts hudeb: opt; do
	case $opt in
	u) update=1 ;;
	d) docs=1 ;;
	e) engine=.inline device=(-n sim -P engine=inline) ;;
	b) guests=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1
[ -z "$update" ] || [ -z "$docs" ] || die "-u and -d do not go together"
guests=${guests:-${update:+9}}
need jq
baseline=${BASELINE:-$here/baseline.json}
out=$build_dir/bench/icount list=$build_dir/bench/icount/list$engine
mkdir -p "$out"

# The name, the columns, the column whose difference is the kernel's own, and
# the arguments of bench. A program that polls keeps the only CPU until its time
# slice ends and would be counted while it only waits, so these programs sleep.
# Regions that the cache keeps cost nothing of the kernel's.
rxe_cases() {
	cat <<-END
		write sof floor latency op=write size=64 mode=sleep ops=4000
		send sof floor latency op=send size=64 mode=sleep ops=4000
		read sof floor latency op=read size=64 mode=sleep ops=4000
		batch sof floor rate op=write size=64 depth=64 batch=16 mode=sleep ops=4800
		echo sof none echo op=send size=64 mode=sleep ops=4000
		echo-16 sof none echo op=send size=64 mode=sleep conns=16 ops=4800
		echo-256 sof none echo op=send size=64 mode=sleep conns=256 ops=5120
		send-64K so none latency op=send size=64K mode=sleep ops=1000
		any-64K o none latency op=send size=64K mode=sleep any=1 ops=1000
		register-4K so system register size=4K ops=200
		register-1M so system register size=1M ops=20
		again-4K so none register size=4K what=local ops=200
		again-1M so none register size=1M what=local ops=20
		connect so none connect api=ep ops=20
		connect-cqs so none connect api=cqs ops=20
		connect-own so none connect api=own ops=20
		write-1000 sof floor latency op=write size=64 mode=sleep conns=1000 ops=4000
	END
	[ -n "$docs" ] || return 0
	for size in 256 1K 4K 16K 64K; do
		echo "write-$size sof none latency op=write size=$size mode=sleep ops=200"
	done
	for batch in 1 2 4 8 32 64; do
		echo "batch-$batch sof none rate op=write size=64 depth=64 batch=$batch mode=sleep ops=4800"
	done
	for conns in 1 100 1000; do
		echo "connect-$conns so none connect api=events conns=$conns ops=1"
		[ "$conns" = 1 ] ||
			echo "connect-$conns-turn so none connect api=events conns=$conns window=1 ops=1"
		[ "$conns" = 1 ] || echo "restart-$conns so none restart conns=$conns ops=1"
	done
}

# Cases for a device that has done the work when the post returns
inline_cases() {
	cat <<-END
		write of floor latency op=write size=64 mode=poll ops=4000
		batch of floor rate op=write size=64 depth=64 batch=16 mode=poll ops=4800
		echo of floor echo op=send size=64 mode=poll ops=4000
	END
}

if [ -n "$engine" ]; then inline_cases; else rxe_cases; fi >"$list"
cut -d ' ' -f 2,4- "$list" >"$out/cases$engine"

# When the kernel's threads run, like rxe's since 6.12, depends on all that
# happened before; a command line of another length is enough to change it.
#
# count KERNEL FIRST LAST: count in guests FIRST to LAST, and use earlier ones,
# too
count() {
	local kernel=$1 first=$2 guests=$3 guest dir results=()
	rm -f "$out/$kernel$engine.json"
	for ((guest = 1; guest <= guests; guest++)); do
		dir=icount.$kernel$engine.$guest
		results+=("$build_dir/vm/$dir/out/results.jsonl")
		[ "$guest" -ge "$first" ] || continue
		rm -rf "$build_dir/vm/$dir/out"
		bench_guest "$kernel" "$dir" "$out/cases$engine" 1 -I -m 2G -t 1200 "${device[@]}" \
			-a "bench=$(printf '%0*d' $((7 * guest)) 0)" |
			sed 's/^/# /' || failed=1
	done
	bench_jq "counts(\$list; $guests) | lines(1)" --rawfile list "$list" \
		"${results[@]}" >"$out/$kernel$engine.json" || failed=1
}

verdicts() {
	bench_jq "verdicts(\"$1$engine\"; \$list)" --rawfile list "$list" \
		"$out/$1$engine.json" "$baseline"
}

cases=$(wc -l <"$list")
bench_build "$@"
echo "TAP version 13"
[ -n "$docs" ] || echo "1..$((cases * $#))"
n=0 failed=0
for kernel; do
	count "$kernel" 1 "${guests:-1}"
	[ -z "$docs" ] || continue
	if [[ -z $guests && $(verdicts "$kernel") == *not_ok* ]]; then
		verdicts "$kernel" | sed 's/^/# in one guest: /'
		count "$kernel" 2 3
	fi
	if [ -n "$update" ]; then
		[ "$failed" = 0 ] || die "$kernel: not everything was counted"
		[ -e "$baseline" ] || echo '{}' >"$baseline"
		bench_jq "baseline(\"$kernel$engine\"; \$list) | lines(1)" --rawfile list "$list" \
			"$out/$kernel$engine.json" "$baseline" >"$out/new$engine"
		cp "$out/new$engine" "$baseline"
	fi
	while read -r verdict text; do
		n=$((n + 1))
		[ "$verdict" = ok ] || failed=1
		echo "${verdict/_/ } $n bench.icount.$text"
	done < <(verdicts "$kernel")
done
[ -n "$docs" ] || [ "$n" = $((cases * $#)) ] || failed=1
exit "$failed"
