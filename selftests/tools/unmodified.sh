#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: unmodified.sh RDMA-POST-RUN [SUITE...]
#
# Tests the wrapper, and runs programs of the given Debian suites with the C library
# of each, from SUITE.tar; skips a suite with a file SUITE.missing. Prints TAP. Needs
# the module and a device at 10.0.0.1; the first argument is build/bin/rdma-post-run,
# beside build/lib.

# Functions are called by name.
# shellcheck disable=SC2317

run=$1
shift
lib=$(cd "$(dirname "$run")/../lib/rdma_post" && pwd)
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
subject=unmodified
# shellcheck source=../lib/tap.sh
. ./tap.sh
evidence() { echo "exit status $status, expected $want $text" && cat "$log"; }

# expect NAME STATUS TEXT COMMAND...: test the command's exit status, and its output
# if TEXT is not empty
expect() {
	name=$1 want=$2 text=$3
	shift 3
	"$@" >"$log" 2>&1
	status=$?
	[ "$status" = "$want" ] && { [ -z "$text" ] || [ "$(cat "$log")" = "$text" ]; }
	result "$name" $?
}

ours() { LD_LIBRARY_PATH='' "$run" ibv_devinfo -v | grep -q rxe0; }
without_uverbs() {
	# The system's library needs files in /sys/class; librdma_post must not.
	mount -t tmpfs none /sys/class && ours
	status=$?
	umount /sys/class
	return "$status"
}
without_device() {
	mv /dev/rdma_post /dev/hidden
	"$run" true
	status=$?
	mv /dev/hidden /dev/rdma_post
	return "$status"
}

# privileged BIT OWNER: run a program with this mode and owner by the wrapper
privileged() {
	cp "$(readlink -f "$(command -v sh)")" /tmp/privileged &&
		chown "$2" /tmp/privileged && chmod "$1" /tmp/privileged &&
		"$run" /tmp/privileged -c :
	status=$?
	rm -f /tmp/privileged
	return "$status"
}

# capable COMMAND...: run a program with capabilities by COMMAND and the wrapper
capable() {
	cp "$(readlink -f "$(command -v sh)")" /tmp/capable &&
		setcap cap_net_raw+ep /tmp/capable && "$@" "$run" /tmp/capable -c :
	status=$?
	rm -f /tmp/capable
	return "$status"
}

echo "TAP version 13"
# shellcheck disable=SC2016
{
	expect arguments 0 'a b|*|' "$run" sh -c 'printf "%s|" "$@"' sh 'a b' '*'
	expect path_first 0 "$lib:/one:/two" env LD_LIBRARY_PATH=/one:/two \
		"$run" sh -c 'echo "$LD_LIBRARY_PATH"'
	expect path_alone 0 "$lib" env -u LD_LIBRARY_PATH \
		"$run" sh -c 'echo "$LD_LIBRARY_PATH"'
	expect exit_status 42 '' "$run" sh -c 'exit 42'
	expect signal 143 '' "$run" sh -c 'kill -TERM $$'
}
expect not_found 127 'rdma-post-run: no-such-program: not found' \
	"$run" no-such-program
expect no_such_file 127 'rdma-post-run: ./no-such-program: no such file' \
	"$run" ./no-such-program
expect not_executable 126 \
	'rdma-post-run: /etc/passwd: not an executable file' "$run" /etc/passwd
expect directory 126 'rdma-post-run: /etc: not an executable file' "$run" /etc
expect no_program 125 '' "$run"
expect version 0 "$("$run" --version | grep '^rdma-post-run [0-9.]*$' || echo none)" "$run" --version
expect no_device 125 \
	'rdma-post-run: no /dev/rdma_post: load the module, modprobe rdma_post; or see rdma-post doctor' \
	without_device
expect set_user_id 0 \
	'rdma-post-run: warning: /tmp/privileged is set-user-ID: librdma_post is not used' \
	privileged 4755 nobody
expect set_group_id 0 \
	'rdma-post-run: warning: /tmp/privileged is set-group-ID: librdma_post is not used' \
	privileged 2755 :nogroup
expect set_user_id_of_its_own 0 '' privileged 4755 root
expect file_capabilities 0 \
	'rdma-post-run: warning: /tmp/capable has file capabilities: librdma_post is not used' \
	capable vm-user
expect file_capabilities_of_root 0 '' capable env
# check.sh has built the program rpath with a DT_RPATH of $ORIGIN/elsewhere.
mkdir elsewhere && cp "$lib/librdmacm.so.1" elsewhere
expect rpath 0 "rdma-post-run: warning: $PWD/rpath finds $PWD/elsewhere/librdmacm.so.1 first: librdma_post is not used" \
	"$run" "$PWD/rpath"
rm -r elsewhere
expect rpath_to_nothing 0 '' "$run" "$PWD/rpath"
expect devinfo 0 '' ours
expect devinfo_without_sysfs 0 '' without_uverbs
# Run a program of the suite that is unpacked in $suite, as the wrapper would.
suite_run() {
	program=$1
	shift
	"./$suite/ld-linux-x86-64.so.2" --library-path "$lib:$PWD/$suite" \
		"./$suite/$program" "$@"
}

# client COMMAND...: run a client, again and again until $server listens; fail if
# the client fails for another reason
client() {
	tries=0
	until suite_run "$@" >"$log.client" 2>&1; do
		tries=$((tries + 1))
		if [ "$tries" = 100 ] || ! kill -0 "$server" 2>/dev/null ||
			! grep -qE "REJECTED|Couldn't connect to" "$log.client"; then
			kill "$server" 2>/dev/null
			cat "$log.client"
			return 1
		fi
		sleep 0.1
	done
	cat "$log.client"
	rm -f "$log.client"
}

# pair CLIENT-ARGUMENTS COMMAND...: run a server, then its client
pair() {
	arguments=$1
	shift
	suite_run "$@" >"$log.server" 2>&1 &
	server=$!
	# shellcheck disable=SC2086
	client "$@" $arguments
	status=$?
	wait "$server"
	server=$?
	cat "$log.server"
	rm -f "$log.server"
	[ "$status" = 0 ] && [ "$server" = 0 ]
}
rping_both() {
	suite_run rping -s -a 10.0.0.1 -C 10 -V >"$log.server" 2>&1 &
	server=$!
	client rping -c -a 10.0.0.1 -C 10 -V
	status=$?
	wait "$server" && rm -f "$log.server" && [ "$status" = 0 ]
}

for suite; do
	tests="devinfo rping ucmatose rc_pingpong rc_pingpong_extended"
	if [ ! -e "$suite.tar" ]; then
		for name in $tests; do
			skip "$suite.$name" "$(cat "$suite.missing")"
		done
		continue
	fi
	tar xf "$suite.tar"
	expect "$suite.devinfo" 0 '' suite_run ibv_devinfo -v
	expect "$suite.rping" 0 '' rping_both
	expect "$suite.ucmatose" 0 '' pair '-s 10.0.0.1' ucmatose
	expect "$suite.rc_pingpong" 0 '' pair 10.0.0.1 \
		ibv_rc_pingpong -g 1 -n 50 -c
	expect "$suite.rc_pingpong_extended" 0 '' pair 10.0.0.1 \
		ibv_rc_pingpong -g 1 -n 50 -N -c
	rm -rf "./$suite"
done
end_tap
