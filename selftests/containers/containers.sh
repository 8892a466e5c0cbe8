#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/containers/containers.sh [-k KERNEL] [-s SUITE] [TEST...]
#
# Tests containers that get the node: boots a system of Debian 12 with systemd, podman and
# bubblewrap from packages in a guest, beside another guest, and runs tests.sh there. SUITE is
# bookworm or trixie, for Debian 13. The
# images are made of folders, and nothing is downloaded but Debian's packages. TESTs are
# functions of tests.sh; "users cdi_file" come first. Prints TAP.

# The tests are functions that check calls by name.
# shellcheck disable=SC2317,SC1091

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"

kernel=6.1 suite=bookworm
while getopts hk:s: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	s) suite=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))

"$vm_dir/deps.sh" build guests userland containers || exit 1
. "$vm_dir/apt.sh"
. "$top_dir/selftests/containers/system.sh"
mkdir -p "$work/logs"
logs=$work/logs

build() {
	make -s -C "$top_dir" BUILD="$build_dir" lib tools && "$vm_dir/kmod.sh" "$kernel"
}

# CDI's own schema is in a package that needs not be installed.
cdi_schema() {
	local dir=$work/schema package=golang-github-container-orchestrated-devices
	package+=-container-device-interface-dev
	rm -rf "$dir"
	mkdir -p "$dir"
	[ -d "$cache_dir/apt/bookworm/lists" ] || apt_update bookworm
	apt_download bookworm "$dir" "$package" &&
		dpkg-deb -x "$dir"/*.deb "$dir/root" &&
		"$build_dir/bin/rdma-post" cdi generate --output "$dir/rdma_post.json" &&
		python3 "$containers_dir/schema.py" "$(dirname \
			"$(find "$dir/root" -name defs.json)")/schema.json" "$dir/rdma_post.json"
}

manifests() {
	python3 "$containers_dir/manifests.py" "$top_dir/examples/kubernetes"
}

# The other guest: a client of the container, then a server for it
other='rping() { /root/bin/rdma-post-run rping "$@"; }
	vm-sync client && rping -c -a 10.0.1.1 -C 5 -v && vm-sync client-done &&
	{ rping -s -a 10.0.1.2 -C 5 -v & } &&
	until grep -qs "state=listen" /proc/[0-9]*/fdinfo/*; do sleep 0.2; done &&
	vm-sync server && wait $! && vm-sync server-done'
[ $# = 0 ] || [[ " $* " = *" other_guest "* ]] || other=true

guests() {
	guest_options tests
	"$vm_dir/pair.sh" -k "$kernel" -t 3000 -o "$build_dir/vm/containers.$kernel" \
		"${options[@]}" -f "$build_dir/lib/rdma_post:/root/lib/rdma_post" \
		-f "$build_dir/bin/rdma-post-run:/root/bin/rdma-post-run" \
		-a "./guest.sh 'exec sh /root/tests.sh $*'" -b "$other" >"$logs/guests" 2>&1
}

subject=containers
. "$top_dir/selftests/lib/tap.sh"
echo "TAP version 13"
echo "1..5"
check manifests manifests
check build build && check cdi_schema cdi_schema
check system make_system tests "$containers_dir"/{tests,lib}.sh "$top_dir/selftests/lib/tap.sh" || exit 1
guests "$@"
status=$?
sed -n 's/\r$//; s/^A: /# /p' "$logs/guests"
evidence() { grep -v '^A: ok' "$logs/guests" | tail -n 20; }
result guests "$status"
exit "$failed"
