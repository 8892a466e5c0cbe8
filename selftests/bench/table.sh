#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/table.sh [-d] KERNEL...
#
# Prints the results of bench.sh and icount.sh in build/bench, with the targets,
# as tab-separated lines. A missing result is "not measured".
#
#   -d   write the rows with a target to Documentation/performance/KERNEL.tsv

set -euo pipefail
. "$(dirname "$0")/lib.sh"
docs=''
while getopts hd opt; do
	case $opt in
	d) docs=$top_dir/Documentation/performance ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2 && exit 2; }
need jq

table() {
	local results=$build_dir/bench/$1/results.json
	local icount=$build_dir/bench/icount/$1.json
	local targets
	targets=$(cat "$here/targets.json")
	[ -e "$icount" ] || icount=/dev/null
	# Targets are for one host; other sets of cases have none.
	[[ $1 != *.[a-z]* ]] || targets='[]'
	if [ -e "$results" ]; then cat "$results"; else echo '[]'; fi |
		jq -r --arg kernel "$1" --argjson targets "$targets" \
			--slurpfile icount "$icount" -f "$here/table.jq"
}

# In reStructuredText a single "-" would be a list.
for kernel; do
	if [ -n "$docs" ]; then
		mkdir -p "$docs"
		table "$kernel" | awk -F '\t' -v OFS='\t' '
			$NF != "-" { for (i = 1; i <= NF; i++) sub(/^-$/, "\\-", $i); print }
			' >"$docs/$kernel.tsv"
	else
		table "$kernel"
	fi
done
