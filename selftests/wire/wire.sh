#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/wire/wire.sh [-k KERNEL] [-l] [-L]
#
# Runs self-verifying traffic between two guests over networks that lose,
# duplicate, reorder, delay and corrupt packets; then one guest is paused,
# killed and restarted. Prints TAP. The library and the module must have been
# built.
#
#   -k KERNEL   6.1 by default
#   -l          long: also pause the guest for a minute
#   -o NAMES    only these tests, with commas between them
#   -L          over the system's librdmacm, to compare

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"

kernel=6.1 only='' long='' library=rdma_post
while getopts hk:lLo: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	l) long=long ;;
	o) only=$OPTARG ;;
	L) library=system ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done

make -s -C "$top_dir/selftests/wire" BUILD="$build_dir" LIB="$library"
here=$top_dir/selftests/wire
steer=$(mktemp -d)
trap 'rm -rf "$steer"' EXIT

monitor() { echo "$1" >"$steer/a.monitor.in"; }

# act ACTION [SECONDS]: carry out a request of B
act() {
	case $1 in
	pause)
		monitor stop
		sleep "$2"
		monitor cont
		;;
	kill) kill -9 "$(cat "$steer/a.pid")" ;;
	restart) touch "$steer/restart" ;;
	esac
}

run() {
	local options=(-k "$kernel" -t 800 -m 384M -S "$steer"
		-o "$build_dir/vm/wire-$library.$kernel"
		-f "$top_dir/selftests/lib/tap.sh" -f "$here/guest.sh" -f "$build_dir/wire-$library/wire")
	[ "$library" = rdma_post ] || options+=(-M)
	"$vm_dir/pair.sh" "${options[@]}" -a "only=$only ./guest.sh a" \
		-b "only=$only ./guest.sh b $long" -r './guest.sh again' 2>&1
}

run | while read -r line; do
	case $line in
	"B: host: "*)
		read -ra words <<<"${line#B: host: }"
		act "${words[@]}"
		;;
	"B: "*) printf '%s\n' "${line#B: }" ;;
	*) printf '# %s\n' "$line" ;;
	esac
done
