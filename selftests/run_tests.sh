#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: run_tests.sh PROGRAM ...
#
# Runs tests one after the other and prints TAP as the kernel's kselftests do:
# each program's own TAP indented by "# ". A program in which every test was
# skipped counts as skipped. A program that leaves something behind in the
# module, as root can see there, fails. Exit status 1 if a program failed, 4 if
# all were skipped.

failed=0 skipped=0 n=0
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.status"' EXIT

# The reason of the first skip.
reason() { sed -n 's/^.*# SKIP *//p' "$log" | head -n 1; }

# Nothing but skips?
only_skips() {
	! grep '^ok ' "$log" | grep -qv '# SKIP' && grep -q '# SKIP' "$log"
}

# What is left, once what runs behind the program's back has come to its end.
objects=/sys/kernel/debug/rdma_post/objects
left_behind() {
	local left tries=0
	[ -r "$objects" ] || return 1
	while left=$(awk '$2 != 0 { printf " %s %d", $1, $2 }' "$objects")
		[ -n "$left" ] && [ "$tries" -lt 30 ]; do
		tries=$((tries + 1))
		sleep 1
	done
	[ -n "$left" ] && echo "# left behind:$left"
}

echo "TAP version 13"
echo "1..$#"
for program; do
	n=$((n + 1))
	name="selftests: rdma_post: $(basename "$program")"
	echo "# $name"
	{
		"$program" </dev/null 2>&1
		echo $? >"$log.status"
	} | tee "$log" | sed 's/^/# /'
	read -r status <"$log.status"
	left_behind && status='left behind'
	if [ "$status" = 4 ] || { [ "$status" = 0 ] && only_skips; }; then
		skipped=$((skipped + 1))
		echo "ok $n $name # SKIP $(reason)"
	elif [ "$status" = 0 ]; then
		echo "ok $n $name"
	else
		failed=$((failed + 1))
		echo "not ok $n $name # exit=$status"
	fi
done
echo "# programs: $((n - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] || exit 1
[ "$skipped" != "$n" ] || exit 4
