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
# "file<TAB>function<TAB>reached" for each place.  What is inlined from a header
# of the kernel's counts for the function of the module that it is part of.
addr2line -a -i -f -e "$ko" -j .text <"$tmp/places" |
	awk -v reached="$tmp/reached" '
	function flush() {
		# Constructors of the sanitizers run at load only.
		if (place != "" && name !~ /^_sub_[ID]_/)
			print file "\t" name "\t" (place in hit)
	}
	BEGIN { while ((getline line <reached) > 0) hit[line] = 1 }
	/^0x/ {
		flush()
		place = $1
		sub(/^0x0*/, "", place)
		file = "elsewhere"
		name = "?"
		odd = 0
		next
	}
	(odd = !odd) {
		function_name = $1
		if (name == "?") name = $1
		next
	}
	{
		if (file != "elsewhere" || !/\/kmod\//) next
		file = $1
		sub(/:.*/, "", file)
		sub(/.*\/kmod\/(\.\/)?/, "kmod/", file)
		name = function_name
	}
	END { flush() }' >"$tmp/all"

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
