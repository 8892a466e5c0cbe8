#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/fuzz/report.sh MODULE COVERAGE
#
# How much of rdma_post.ko was reached, by source file: MODULE is built with KCOV
# and debug information, COVERAGE has offsets in its .text, in hex. An instrumented
# place is a call of __sanitizer_cov_trace_pc(), which the compiler puts into each
# basic block; what was reached is the address after it. After the table come the
# functions that were never entered.

set -euo pipefail
ko=$1 coverage=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The calls have relocations; the address after one is 4 bytes further.
objdump -r -j .text "$ko" | awk '
	$3 ~ /^__sanitizer_cov_trace_pc/ { print $1 }' |
	while read -r offset; do
		printf '%x\n' $((16#$offset + 4))
	done | sort -u >"$tmp/places"
sort -u "$coverage" | comm -12 - "$tmp/places" >"$tmp/reached"
# "file<TAB>function<TAB>reached" for each place, as the compiler inlined it
addr2line -f -e "$ko" -j .text <"$tmp/places" | paste - - >"$tmp/names"
paste "$tmp/places" "$tmp/names" | awk -v reached="$tmp/reached" '
	BEGIN { while ((getline line <reached) > 0) hit[line] = 1 }
	{
		file = $3
		sub(/:.*/, "", file)
		sub(/.*\/kmod\//, "kmod/", file)
		if (file !~ /^kmod\//) file = "kernel headers"
		print file "\t" $2 "\t" ($1 in hit)
	}' >"$tmp/all"

awk -F '\t' '
	{ n[$1]++; hit[$1] += $3; total++; hits += $3 }
	END {
		for (file in n)
			printf "%-24s %6d %6d %5.1f %%\n", file, n[file],
				hit[file], 100 * hit[file] / n[file] | "sort"
		close("sort")
		printf "%-24s %6d %6d %5.1f %%\n", "all", total, hits,
			100 * hits / total
	}' "$tmp/all" >"$tmp/table"
printf '%-24s %6s %6s\n' file places reached
cat "$tmp/table"
echo
echo "Never entered:"
awk -F '\t' '
	{ key = $1 " " $2; hit[key] += $3; n[key]++ }
	END { for (key in n) if (!hit[key]) printf "%s (%d)\n", key, n[key] }' \
	"$tmp/all" | sort
