#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/profile.sh [options] COLUMN... -- CASE...
#
# Prints where the instructions of a case go: for each function of the kernel,
# and for the program as a whole, the instructions for a work request (or for
# another operation, see -f), and how often the function is entered. COLUMN is
# system, ours or floor; with two of them the lines are sorted by the
# difference. Nothing is
# sampled: QEMU logs each instruction of a guest with one CPU for some time, see
# "log exec" in its manual.
#
#   -e           on rdmasim, which does the work in the post; function sim_post_send[rdmasim]
#   -f FUNCTION  the function that the kernel enters once for each operation: by
#                default rxe_post_send; for register use rxe_reg_user_mr, and for
#                connect rdma_connect_ece[rdma_cm]. rxe's need no module's name
#   -k KERNEL    6.1 by default
#   -n LINES     of the table, 40 by default
#   -s SECONDS   of tracing, 2 by default; a second is 70 MB
#
# Example: selftests/bench/profile.sh ours floor -- latency op=write size=64
# mode=sleep

set -euo pipefail
. "$(dirname "$0")/lib.sh"
function=rxe_post_send kernel=6.1 lines=40 seconds=2 device=()
while getopts hef:k:n:s: opt; do
	case $opt in
	e) function='sim_post_send[rdmasim]' device=(-n sim -P engine=inline) ;;
	f) function=$OPTARG ;;
	k) kernel=$OPTARG ;;
	n) lines=$OPTARG ;;
	s) seconds=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
columns=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	case $1 in
	system | ours | floor) columns+=("$1") ;;
	*) usage >&2 && exit 2 ;;
	esac
	shift
done
if [ "${#columns[@]}" = 0 ] || [ "${#columns[@]}" -gt 2 ] || [ $# -lt 2 ]; then
	usage >&2
	exit 2
fi
shift
need socat

# measure COLUMN: print the command that runs the case in the guest
measure() {
	case $1 in
	system) echo "/root/bench $case addr=10.0.0.1" ;;
	ours) echo "/opt/bin/rdma-post-run /root/bench $case addr=10.0.0.1" ;;
	floor) echo "echo '$case addr=10.0.0.1' >/sys/module/floor/parameters/run" ;;
	esac
}

# trace COLUMN: write trace and out/kallsyms to build/vm/profile.COLUMN
trace() {
	local dir=$build_dir/vm/profile.$1 guest
	rm -rf "$dir"
	mkdir -p "$dir"
	"$vm_dir/run.sh" -k "$kernel" "${device[@]}" -I -t 600 -o "$dir" \
		-i "$build_dir/floor-$kernel/floor.ko" \
		-f "$build_dir/bench/bench" \
		-f "$build_dir/bin/rdma-post-run:/opt/bin/rdma-post-run" \
		-f "$build_dir/lib/rdma_post:/opt/lib/rdma_post" \
		-q -monitor -q "unix:$dir/monitor,server,nowait" \
		-- sh -c "sysctl -q kernel.kptr_restrict=0
			cp /proc/kallsyms /out/
			echo profile: ready >/dev/kmsg
			$(measure "$1") </dev/null" >"$dir.log" 2>&1 &
	guest=$!
	until grep -q 'profile: ready' "$dir/kernel.log" 2>/dev/null; do
		kill -0 "$guest" 2>/dev/null || die "the guest has ended, see $dir.log"
		sleep 0.2
	done
	trap 'kill "$guest" 2>/dev/null' EXIT
	sleep 4
	{
		# QEMU 8.1 and later have the second name.
		printf '%s\n' "logfile $dir/trace" 'singlestep on' \
			'one-insn-per-tb on' 'log exec,nochain'
		sleep "$seconds"
		printf '%s\n' 'log none' 'singlestep off' 'one-insn-per-tb off'
		sleep 1
	} | socat -t 1 - "unix:$dir/monitor" >/dev/null 2>&1 || :
	wait "$guest" || die "the guest has failed, see $dir.log"
	trap - EXIT
	[ -s "$dir/trace" ] || die "nothing was traced, see $dir.log"
}

# count COLUMN: print lines of function, instructions and entries for a request.
# Addresses have 16 digits, so that they compare as strings.
count() {
	local dir=$build_dir/vm/profile.$1
	grep -E '^[0-9a-f]+ [tTwW] ' "$dir/out/kallsyms" | sort -k 1,1 >"$dir/symbols"
	awk -v once="$function" '
	NR == FNR { at[++n] = $1; name[n] = $3 $4; next }
	!match($0, /\/[0-9a-f]+\//) { next }
	{
		a = substr($0, RSTART + 1, 16)
		all++
		if (!(a in of)) {
			lo = 0; hi = n
			while (lo < hi) {
				mid = int((lo + hi + 1) / 2)
				if (at[mid] <= a) lo = mid; else hi = mid - 1
			}
			of[a] = a < "8" ? "(program)" : name[lo]
			if (at[lo] == a)
				first[a]
		}
		f = of[a]
		count[f]++
		if (a in first)
			entries[f]++
	}
	END {
		requests = entries[once "[rdma_rxe]"]
		if (!requests)
			requests = entries[once]
		if (!requests)
			exit 1
		printf "(all) %.1f 1\n", all / requests
		for (f in count)
			printf "%s %.1f %.1f\n", f, count[f] / requests, entries[f] / requests
	}' "$dir/symbols" "$dir/trace" || die "no $function was traced on $1"
}

bench_build "$kernel"
case="$* ms=3000"
for column in "${columns[@]}"; do
	trace "$column"
	count "$column" >"$build_dir/vm/profile.$column/counts"
done
column=${columns[0]} other=${columns[1]:-$column}
printf '%10s %10s %10s  %8s %8s  %s\n' "$column" "$other" difference \
	entries "($other)" function
awk '
	NR == FNR { n[$1] = $2; entered[$1] = $3; next }
	{ printf "%10.1f %10.1f %10.1f  %8.1f %8.1f  %s\n", n[$1], $2, n[$1] - $2, entered[$1], $3, $1; seen[$1] }
	END {
		for (f in n)
			if (!(f in seen))
				printf "%10.1f %10.1f %10.1f  %8.1f %8.1f  %s\n", n[f], 0, n[f], entered[f], 0, f
	}' "$build_dir/vm/profile.$column/counts" "$build_dir/vm/profile.$other/counts" |
	if [ "$column" = "$other" ]; then
		sort -k 1,1 -rn
	else
		awk '{ print ($3 < 0 ? -$3 : $3), $0 }' | sort -rn | cut -d ' ' -f 2-
	fi | head -n "$lines" || :
