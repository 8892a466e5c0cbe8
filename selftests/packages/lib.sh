# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# TAP for the tests of packages. Sourced by these, after vm/lib.sh; they set $subject, the
# first word of the tests' names, and $logs, a directory.

failed=0 n=0

# The pages of the documentation, which the packages must have
mapfile -t pages < <(cd "$top_dir/Documentation" && printf '%s\n' *.rst | sed 's/\.rst$//')

# check NAME COMMAND...: a test that passes if the command succeeds; true if it does
check() {
	local name=$1 start=$EPOCHREALTIME
	shift
	n=$((n + 1))
	if "$@" >"$logs/$name" 2>&1; then
		echo "ok $n $subject.$name # $(seconds_since "$start") s"
		return
	fi
	failed=1
	tail -n 30 "$logs/$name" | sed 's/^/# /'
	echo "not ok $n $subject.$name"
	return 1
}
