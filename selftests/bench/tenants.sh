#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/tenants.sh [-r ROUNDS] [KERNEL...]
#
# Measures what programs with a rate get, and what a program without one loses beside them:
# the table of Documentation/tenants.rst. Two programs write 64 KiB again and again, at 1 and
# at 3 MB/s; a third one writes by itself, and then beside them. Prints kB in a second, and
# the latencies that 99 % do not exceed in microseconds: medians of the rounds. By default on
# 6.1. Does not depend on the load of the machine: the guest has one CPU, whose clock counts
# its instructions.
#
#   -r ROUNDS   3 by default

set -euo pipefail
. "$(dirname "$0")/lib.sh"
rounds=3
while getopts hr: opt; do
	case $opt in
	r) rounds=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1
need jq

bench_build "$@"
build_all tools
for kernel; do
	dir=$build_dir/vm/tenants.$kernel
	"$vm_dir/run.sh" -k "$kernel" -I -m 2G -t 1200 -o "$dir" "${bench_files[@]}" \
		-f "$build_dir/bin/rdma-post:/opt/bin/rdma-post" \
		-f "$here/tenants-guest.sh" -- \
		"${bench_env[@]}" PATH=/opt/bin:/sbin:/bin:/usr/sbin:/usr/bin \
		sh -c "./tenants-guest.sh 10.0.0.1 $rounds >/out/results" >&2
	jq -n -r --arg kernel "$kernel" '
		def median: sort | .[length / 2 | floor];
		[inputs as $who | input | {$who, size, rate: (.size / .mean * 1e6), p99}]
		| group_by([.who, .size])[]
		| [$kernel, .[0].who, .[0].size, (map(.rate) | median | round),
		   (map(.p99 / 1000) | median | round)]
		| @tsv' "$dir/out/results"
done | column -t -N kernel,who,bytes,kB/s,p99_us
