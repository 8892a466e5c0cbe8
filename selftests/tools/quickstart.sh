#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/quickstart.sh script SECTION...
#        selftests/tools/quickstart.sh compare SECTION... <OUTPUT
#
# What stands in sections of Documentation/quickstart.rst:
#
#   script    prints a script for bash with their commands, the lines that begin with "$",
#             in the order of the arguments. After a command in the background it waits until
#             a program listens, and before the next one until that program has ended.
#   compare   fails if a line that the page shows as output of a section is not in OUTPUT, the
#             script's, where the section ran. Numbers may be others; "..." stands for any
#             lines.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"

# lines KIND SECTION: print the commands or the output that a section shows
lines() {
	awk -v kind="$1" -v section="$2" '
		/^=+$/ { here = last == section }
		{ last = $0 }
		!here { next }
		/^[^ ]/ { session = 0 }
		sub(/^  \$ /, "") { session = 1; if (kind == "commands") print; next }
		session && sub(/^  /, "") && kind == "output" && $0 != "..." { print }
	' "$top_dir/Documentation/quickstart.rst"
}

# Colours, blanks and numbers do not matter.
plain() { sed -E 's/\x1b\[[0-9;]*m//g; s/[0-9]+/0/g; s/[[:space:]]+/ /g; s/^ | $//g'; }

script() {
	local section command
	cat <<-'END'
		set -ex
		command -v sudo || sudo() { "$@"; }
		listens() { until rdma resource show cm_id | grep 'state LISTEN'; do sleep 0.2; done; }
	END
	for section; do
		echo "echo '=== $section'"
		while read -r command; do
			if [[ ${command%%#*} =~ \&\ *$ ]]; then
				printf 'wait\n%s\nlistens\n' "$command"
			else
				echo "$command"
			fi
		done < <(lines commands "$section")
		echo wait
	done
}

compare() {
	local section line all output status=0
	all=$(plain)
	for section; do
		output=$(awk -v title="=== $section" '/^=== / { here = $0 == title } here' <<<"$all")
		while read -r line; do
			grep -qxF -e "$(plain <<<"$line")" <<<"$output" && continue
			echo "quickstart.rst: \"$section\": not printed: $line"
			status=1
		done < <(lines output "$section")
	done
	return $status
}

case ${1-} in
script | compare) [ $# -gt 1 ] || { usage >&2 && exit 2; } ;;
-h) usage && exit ;;
*) usage >&2 && exit 2 ;;
esac
for section in "${@:2}"; do
	[ -n "$(lines commands "$section")" ] || die "\"$section\" shows no commands"
	[ -n "$(lines output "$section")" ] || die "\"$section\" shows no output"
done
"$@"
