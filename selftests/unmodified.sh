#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: unmodified.sh RDMA-POST-RUN
#
# What the wrapper does for a program, as TAP. Needs the module and a device; the
# first argument is build/bin/rdma-post-run, beside build/lib.

# Functions are called by name.
# shellcheck disable=SC2317

run=$1
lib=$(cd "$(dirname "$run")/../lib/rdma_post" && pwd)
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0 n=0

# expect NAME STATUS TEXT COMMAND...: the command's exit status, and its output
# if TEXT is not empty
expect() {
	name=$1 want=$2 text=$3
	shift 3
	"$@" >"$log" 2>&1
	status=$?
	n=$((n + 1))
	if [ "$status" = "$want" ] &&
		{ [ -z "$text" ] || [ "$(cat "$log")" = "$text" ]; }; then
		echo "ok $n unmodified.$name"
	else
		failed=1
		echo "# exit status $status, expected $want $text"
		sed 's/^/# /' "$log"
		echo "not ok $n unmodified.$name"
	fi
}

ours() { LD_LIBRARY_PATH='' "$run" ibv_devinfo -v | grep -q rxe0; }
without_uverbs() {
	# What the system's library finds there must not be needed.
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
expect no_device 125 \
	'rdma-post-run: no /dev/rdma_post: load the module, modprobe rdma_post' \
	without_device
expect devinfo 0 '' ours
expect devinfo_without_sysfs 0 '' without_uverbs
echo "1..$n"
exit $failed
