#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/pair.sh -a COMMAND -b COMMAND [options]
#
# Boots two guests joined by a wire, runs a shell command in each, and shows
# their output live behind "A: " and "B: ", without what a carriage return
# overwrites. A is 10.0.1.1 and fd01::1, B is 10.0.1.2 and fd01::2, each with rxe0
# on eth0, MTU 4200. The commands start when both guests are up; the guests stay
# until both commands have ended. In a command "vm-sync NAME" waits until the
# other has called the same.
#
#   -o DIRECTORY   for the logs, in a/ and b/; by default build/vm/pair.KERNEL
#   -S DIRECTORY   for files that control the guests: a.pid and b.pid;
#                  a.monitor.in and b.monitor.in, which take commands for QEMU's
#                  monitor
#   -r COMMAND     when A has been killed, wait for a file "restart" in the
#                  directory of -S, and boot A again with COMMAND, without
#                  vm-sync. A ends with B, and the exit status is B's.
#   -k KERNEL -f SRC[:DEST] -B -M -p PARAMS -i FILE.ko -U -m SIZE -s CPUS
#   -t SECONDS -c ARGS -q ARG   options of run.sh, for both guests (-c is its -a)
#
# Exit status: 0 if both ended with 0, otherwise A's, or B's if A's is 0.

set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$vm_dir/guest.sh"

command_a='' command_b='' out_dir='' kernel=6.1 build='' steer='' again=''
options=()

while getopts ha:b:o:k:f:BMp:i:Um:s:t:c:q:S:r: opt; do
	case $opt in
	a) command_a=$OPTARG ;;
	b) command_b=$OPTARG ;;
	o) out_dir=$OPTARG ;;
	k) kernel=$OPTARG ;;
	B) build=1 ;;
	S) steer=$OPTARG ;;
	r) again=$OPTARG ;;
	M | U) options+=("-$opt") ;;
	c) options+=(-a "$OPTARG") ;;
	f | p | i | m | s | t | q) options+=("-$opt" "$OPTARG") ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
if [ -z "$command_a" ] || [ -z "$command_b" ] || [ $# -gt 0 ]; then
	usage >&2
	exit 2
fi

out_dir=${out_dir:-$build_dir/vm/pair.$kernel}
lock "$out_dir/.lock"
[ -z "$build" ] || "$vm_dir/kmod.sh" "$kernel"
[[ $kernel == debug* ]] || "$vm_dir/fetch.sh" "$kernel"

# The wire and the channel of vm-sync are Unix sockets in this directory.
sockets=$(mktemp -d)
trap 'rm -rf "$sockets"' EXIT
[ -z "$steer" ] || mkfifo "$steer"/{a,b}.monitor.{in,out}

mark() { exec sed -u -e 's/.*\r//' -e "s/^/$1: /"; }

# start LETTER NUMBER OTHER COMMAND SYNC NAME [OPTION]...
start() {
	local letter=$1 number=$2 other=$3 command=$4 sync=$5 name=$6
	local wire=dgram,id=wire,local.type=unix,local.path=$sockets/$letter
	wire+=,remote.type=unix,remote.path=$sockets/$other
	shift 6
	[ -z "$steer" ] || set -- "$@" -q -pidfile -q "$steer/$letter.pid" \
		-q -monitor -q "pipe:$steer/$letter.monitor"
	"$vm_dir/run.sh" -k "$kernel" -n wire -w "$number" -o "$out_dir/$name" \
		"${options[@]}" "$@" -q -netdev -q "$wire" -q -device -q \
		"virtio-net-pci,netdev=wire,mac=52:54:00:00:01:0$number,host_mtu=4200,romfile=" \
		-q -chardev -q "socket,id=sync,path=$sockets/sync,$sync" \
		-q -device -q virtserialport,nr=4,chardev=sync \
		-- sh -c "$command" \
		> >(mark "${letter^}") 2> >(mark "${letter^}" >&2) &
}

start a 1 b "$command_a" server=on,wait=off a
pid_a=$!
start b 2 a "$command_b" reconnect=1 b
pid_b=$!
trap 'kill "$pid_a" "$pid_b" 2>/dev/null; rm -rf "$sockets"' EXIT
trap 'exit 130' INT TERM
status_a=0 status_b=0
wait "$pid_a" || status_a=$?
if [ -n "$again" ]; then
	until [ -e "$steer/restart" ] || ! kill -0 "$pid_b" 2>/dev/null; do
		sleep 0.2
	done
	rm -f "$sockets/a" "$sockets/sync"
	start a 1 b "$again" server=on,wait=off a.again -W 1
	pid_a=$!
fi
wait "$pid_b" || status_b=$?
if [ -n "$again" ]; then
	kill "$pid_a" 2>/dev/null || true
	wait "$pid_a" || true
	# A was killed both times, so its status means nothing.
	status_a=0
	for life in a a.again; do
		[ ! -e "$out_dir/$life/kernel.log" ] ||
			! out_dir=$out_dir/$life splats || status_a=99
	done
fi
# Wait for the processes that print the output.
wait
trap 'rm -rf "$sockets"' EXIT

say "A ended with $status_a, B with $status_b; logs in $out_dir/a and $out_dir/b"
[ "$status_a" = 0 ] || exit "$status_a"
exit "$status_b"
