#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/userland.sh bookworm|trixie[-containers]
#        selftests/vm/userland.sh -r ROOT COMMAND [ARGS]
#
# Makes a whole system of a Debian release with its kernel, the kernel's headers, and what
# is needed to build packages and modules, and prints the path of its archive,
# ${RDMA_POST_CACHE:-~/.cache/rdma_post}/userland/SUITE-HASH.tar. run.sh boots its kernel
# as "userland-SUITE". SUITE-containers is another system, with what runs containers, and
# without a kernel. A user who is not root needs a range in /etc/subuid.
#
# -r runs a command as root in such a system that was unpacked into ROOT, or on the files
# of ROOT if the command is "tar" or "mke2fs".

set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$vm_dir/apt.sh"
. "$vm_dir/vmlinux.sh"

packages=(
	# a system
	apt systemd udev kmod iproute2 procps util-linux
	linux-image-amd64 linux-headers-amd64
	# its RDMA programs
	rdmacm-utils ibverbs-utils ibverbs-providers libcap2-bin
	# builds of modules and packages
	dkms build-essential debhelper dh-dkms libibverbs-dev librdmacm-dev pkgconf
	python3-sphinx
)
containers=(
	# a system with logins
	systemd systemd-sysv dbus dbus-user-session libpam-systemd login udev kmod
	iproute2 procps util-linux
	# containers, also of users who are not root
	podman crun uidmap bubblewrap
	# for an image with Debian's rping and ibv_rc_pingpong
	rdmacm-utils ibverbs-utils busybox-static
)

# as_root COMMAND...: run it as root, of a user namespace if need be
as_root() {
	if [ "$(id -u)" = 0 ]; then
		unshare --mount --propagation private "$@"
	else
		mmdebstrap --unshare-helper unshare --mount --propagation private "$@"
	fi
}

# The mounts end with the namespace.
# shellcheck disable=SC2016
in_root() {
	local root=$1
	shift
	as_root sh -ec '
		root=$1
		shift
		for dir in proc sys dev; do
			mount --rbind /$dir "$root/$dir"
		done
		mount -t tmpfs tmpfs "$root/run"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"
	' sh "$root" "$@"
}

make_userland() {
	local tar=$1 mode=unshare
	need mmdebstrap
	[ "$(id -u)" != 0 ] || mode=root
	apt_update "$suite"
	say "making the userland of $suite"
	mmdebstrap --quiet --mode="$mode" --variant=minbase \
		--aptopt="Acquire::Retries \"$apt_retries\"" \
		--include="$(IFS=, && echo "${packages[*]}")" \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		"$suite" "$tar.tmp.tar" "$cache_dir/apt/$suite/sources.list" >&2
	mv "$tar.tmp.tar" "$tar"
}

# unpack_kernel ARCHIVE DIRECTORY
unpack_kernel() {
	local tar=$1 tmp=$2 release
	rm -rf "$tmp"
	mkdir -p "$tmp/root"
	tar -C "$tmp/root" --no-same-owner --wildcards -xf "$tar" './boot/vmlinuz-*' \
		'./*lib/modules/*'
	[ -e "$tmp/root/lib" ] || ln -s usr/lib "$tmp/root/lib"
	release=$(basename "$tmp"/root/lib/modules/*)
	extract_vmlinux "$tmp/root/boot/vmlinuz-$release" "$tmp/vmlinux"
	depmod -b "$tmp/root" "$release"
	echo "$release" >"$tmp/release"
	echo "$tar" >"$tmp/userland"
}

# Take the kernel out of the archive, for run.sh.
make_kernel() {
	local tar=$1 final=$cache_dir/kernels/userland-$suite
	need readelf depmod
	attempt "unpack the kernel of $tar" unpack_kernel "$tar" "$final.tmp"
	rm -rf "$final"
	mv "$final.tmp" "$final"
}

case ${1--h} in
-h | --help) usage && exit ;;
-r)
	case $3 in
	tar | mke2fs | rm | cp) as_root "${@:3}" ;;
	*) in_root "${@:2}" ;;
	esac
	exit
	;;
bookworm | trixie) suite=$1 name=$1 ;;
bookworm-containers | trixie-containers)
	suite=${1%-containers} name=$1
	packages=("${containers[@]}")
	;;
*) usage >&2 && exit 2 ;;
esac

key=$({ declare -f make_userland && echo "${packages[*]}"; } | sha256sum | cut -c1-12)
tar=$cache_dir/userland/$name-$key.tar
up_to_date() {
	[ -e "$tar" ] || return
	[ "$name" != "$suite" ] ||
		[ "$(cat "$cache_dir/kernels/userland-$suite/userland" 2>/dev/null)" = "$tar" ]
}
if ! up_to_date; then
	lock "$cache_dir/locks/userland"
	if ! up_to_date; then
		start=$EPOCHREALTIME
		mkdir -p "$cache_dir"/{userland,kernels}
		trap 'rm -rf "$tar.tmp.tar" "$cache_dir/kernels/userland-$suite.tmp"' EXIT
		if [ ! -e "$tar" ]; then
			rm -f "$cache_dir/userland/$name"-????????????.tar*
			make_userland "$tar"
		fi
		[ "$name" != "$suite" ] || make_kernel "$tar"
		say "userland $name made in $(seconds_since "$start") s"
	fi
	unlock
fi
echo "$tar"
