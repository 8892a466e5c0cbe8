# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2034,SC2154
# TAP and waits, for scripts of tests on the host and in guests. They set subject, the first
# word of the tests' names, before they source this.

failed=0 n=0

# Print what tells why the last test failed. Scripts may have their own.
evidence() { if [ -n "${logs-}" ]; then tail -n 40 "$logs/$test"; else cat out err; fi; }

# result NAME STATUS [NOTE]: print a line of TAP, and the evidence if the test failed. With
# "# ok" tap.awk would count lines of the evidence.
result() {
	local test=$1
	n=$((n + 1))
	if [ "$2" = 0 ]; then
		echo "ok $n $subject.$1${3:+ # $3}"
		return
	fi
	failed=1
	evidence 2>&1 | sed 's/^/# | /'
	echo "not ok $n $subject.$1"
	return 1
}

# test_ NAME COMMAND...: a test that passes if the command succeeds
test_() {
	local test=$1
	shift
	"$@"
	result "$test" $?
}

# check NAME COMMAND...: the same, with the output of the command in $logs/NAME as evidence
check() {
	local test=$1 start
	start=$(date +%s)
	shift
	"$@" >"$logs/$test" 2>&1
	result "$test" $? "$(($(date +%s) - start)) s"
}

skip() {
	n=$((n + 1))
	echo "ok $n $subject.$1 # SKIP $2"
}

end_tap() {
	echo "1..$n"
	exit "$failed"
}

# until_true SECONDS COMMAND...: wait until it succeeds; fail after this time
until_true() {
	local end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.1
	done
}

# while_runs PID COMMAND...: wait until it succeeds; fail if the process has ended before, or
# after five minutes
while_runs() {
	local pid=$1 limit=$(($(date +%s) + 300))
	shift
	until "$@"; do
		if ! kill -0 "$pid" 2>/dev/null || [ "$(date +%s)" -ge $limit ]; then
			"$@"
			return
		fi
		sleep 0.05
	done
}

# listens PORT: a program listens there
listens() { rdma resource show cm_id | grep 'state LISTEN' | grep -q ":$1 "; }
