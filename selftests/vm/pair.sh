#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/pair.sh -a COMMAND -b COMMAND [options]
#
# Boots two guests joined by a wire, runs a shell command in each, and shows
# their output live behind "A: " and "B: ". A is 10.0.1.1 and fd01::1, B is
# 10.0.1.2 and fd01::2, each with rxe0 on eth0, MTU 4200. The commands start
# when both guests are up; the guests stay until both commands have ended. In
# a command "vm-sync NAME" waits until the other has called the same.
#
#   -o DIRECTORY   for the logs, in a/ and b/; by default build/vm/pair.KERNEL
#   -k KERNEL -f SRC[:DEST] -B -M -p PARAMS -i FILE.ko -U -m SIZE -s CPUS
#   -t SECONDS -c ARGS     as those of run.sh, for both (-c is its -a)
#
# Exit status: 0 if both ended with 0, otherwise A's, or B's if A's is 0.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

command_a='' command_b='' out_dir='' kernel=6.1 build=''
options=()

while getopts ha:b:o:k:f:BMp:i:Um:s:t:c: opt; do
	case $opt in
	a) command_a=$OPTARG ;;
	b) command_b=$OPTARG ;;
	o) out_dir=$OPTARG ;;
	k) kernel=$OPTARG ;;
	B) build=1 ;;
	M | U) options+=("-$opt") ;;
	c) options+=(-a "$OPTARG") ;;
	f | p | i | m | s | t) options+=("-$opt" "$OPTARG") ;;
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

# The wire and the ends of vm-sync are sockets.
sockets=$(mktemp -d)
trap 'rm -rf "$sockets"' EXIT

# start LETTER NUMBER OTHER COMMAND SYNC
start() {
	local letter=$1 number=$2 other=$3
	local wire=dgram,id=wire,local.type=unix,local.path=$sockets/$letter
	wire+=,remote.type=unix,remote.path=$sockets/$other
	"$vm_dir/run.sh" -k "$kernel" -n wire -w "$number" -o "$out_dir/$letter" \
		"${options[@]}" -q -netdev -q "$wire" -q -device -q \
		"virtio-net-pci,netdev=wire,mac=52:54:00:00:01:0$number,host_mtu=4200,romfile=" \
		-q -chardev -q "socket,id=sync,path=$sockets/sync,$5" \
		-q -device -q virtserialport,nr=4,chardev=sync \
		-- sh -c "$4" \
		> >(exec sed -u "s/^/${letter^}: /") \
		2> >(exec sed -u "s/^/${letter^}: /" >&2) &
}

start a 1 b "$command_a" server=on,wait=off
pid_a=$!
start b 2 a "$command_b" reconnect=1
pid_b=$!
trap 'kill "$pid_a" "$pid_b" 2>/dev/null; rm -rf "$sockets"' EXIT
trap 'exit 130' INT TERM
status_a=0 status_b=0
wait "$pid_a" || status_a=$?
wait "$pid_b" || status_b=$?
# What is left in the pipes.
wait
trap 'rm -rf "$sockets"' EXIT

say "A ended with $status_a, B with $status_b; logs in $out_dir/a and $out_dir/b"
[ "$status_a" = 0 ] || exit "$status_a"
exit "$status_b"
