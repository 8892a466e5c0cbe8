#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: examples/demo-containers.sh [-k KERNEL]
#
# Boots a system of Debian 12 in a guest and shows containers that use RDMA: podman's, of a
# user who is not root, and bubblewrap's. Builds what it needs, and as root installs the
# packages for that. Fails if a command does not do what it shall, or the kernel complained.

set -euo pipefail
. "$(dirname "$0")/../selftests/vm/lib.sh"

kernel=6.1 suite=bookworm
while getopts hk: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done

started=$EPOCHREALTIME
"$vm_dir/deps.sh" build boot userland
. "$top_dir/selftests/containers/system.sh"
mkdir -p "$work"
make -s -C "$top_dir" BUILD="$build_dir" lib tools
"$vm_dir/kmod.sh" "$kernel"
say "making a system with podman and bubblewrap"
make_system demo "$containers_dir"/{demo,lib}.sh \
	"$top_dir/selftests/lib/tap.sh" >"$work/system.log" 2>&1 || {
	tail -n 30 "$work/system.log" >&2
	die "no system, see $work/system.log"
}
guest_options demo
status=0
"$vm_dir/run.sh" -k "$kernel" -t 900 -o "$build_dir/vm/demo-containers" \
	"${options[@]}" -- ./guest.sh 'exec sh /root/demo.sh' || status=$?
if [ "$status" = 0 ]; then
	say "all right, in $(seconds_since "$started") s"
else
	say "FAILED with status $status"
fi
exit "$status"
