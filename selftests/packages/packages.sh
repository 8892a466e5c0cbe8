#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/packages/packages.sh [SUITE...]
#
# Tests the Debian packages in whole systems of Debian 12 and 13 (bookworm, trixie): builds
# them there, in an older version, too; installs the older ones, for which DKMS builds the
# module for the system's kernel; upgrades them; boots a guest with that system and its
# kernel, where the module is loaded, an unprivileged user runs programs, and what the quick
# start shows is done; removes and purges them. Prints TAP.

# The tests are functions that check calls by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"

suites=(bookworm trixie)
case ${1-} in
-h | --help) usage && exit ;;
-*) usage >&2 && exit 2 ;;
?*) suites=("$@") ;;
esac

"$vm_dir/deps.sh" build guests deb userland || exit 1
here=$top_dir/selftests/packages
old=0.0.9
new=$(release_version)
names=(librdma-post1 librdma-post-dev rdma-post-tools rdma-post-dkms rdma-post-doc)

# in_root COMMAND...: as root in the system; on its files for tar and others
in_root() { "$vm_dir/userland.sh" -r "$root" "$@"; }

unpack() {
	in_root rm -rf "$root"
	mkdir -p "$root"
	in_root tar -C "$root" --exclude='./dev/*' -xf "$1" &&
		# The archive has no documentation, but the packages shall have theirs.
		in_root rm "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
}

# build VERSION
build() {
	local dir=/build/$1 name
	"$top_dir/packaging/deb.sh" -s -v "$1" "$work/source-$1" &&
		in_root mkdir -p "$dir" /repository/"$1" &&
		in_root cp -r "$work/source-$1/rdma-post-$1" "$root$dir/" &&
		in_root sh -ec "
			cd $dir/rdma-post-$1
			dpkg-buildpackage -us -uc -b
			mv ../*.deb /repository/$1/
			cd / && rm -r $dir
			ls /repository/$1" || return 1
	for name in "${names[@]}"; do
		ls "$root/repository/$1/${name}_$1"_*.deb || return 1
	done
}

# offer VERSION: let apt know only these packages
offer() {
	in_root sh -ec "
		rm -rf /etc/apt/sources.list.d/* /etc/apt/sources.list
		cd /repository/$1
		dpkg-scanpackages -m . >Packages
		echo 'deb [trusted=yes] file:/repository/$1 ./' >/etc/apt/sources.list
		apt-get update"
}

# module_is VERSION: DKMS has built this version, and no other, for the system's kernel
module_is() {
	in_root dkms status
	in_root modinfo -k "$release" rdma_post
	[[ $(in_root dkms status) = rdma-post/"$1,"*"$release"*installed ]] &&
		[ "$(in_root modinfo -k "$release" -F version rdma_post)" = "$1" ] &&
		[ "$(in_root sh -c 'echo /usr/src/rdma-post-*')" = "/usr/src/rdma-post-$1" ]
}

install_old() {
	in_root cp "$here/files.sh" "$root/root/" &&
		in_root sh -c 'sh /root/files.sh >/root/files' &&
		offer "$old" &&
		in_root apt-get -y install "${names[@]:1}" &&
		module_is "$old"
}

# shellcheck disable=SC2016
upgrade() {
	offer "$new" && in_root apt-get -y upgrade && module_is "$new" &&
		in_root dpkg-query -W "${names[@]}" &&
		[[ $(in_root dpkg -S /usr/lib/modules-load.d/rdma-post.conf) = rdma-post-dkms:* ]] &&
		[ "$(in_root dpkg-query -W -f '${Version}\n' "${names[@]}" |
			sort -u)" = "$new" ]
}

# The pages refer to nothing outside of the package but what it depends on.
# shellcheck disable=SC2016
documentation() {
	in_root sh -ec '
		cd /usr/share/doc/rdma-post-doc/html
		for page in "$@"; do
			test -s "$page.html"
		done
		grep "href=\"install.html\"" index.html
		[ -z "$(find -L . -type l)" ]
		cd ../../librdma-post-dev
		test -s changelog.gz
		cd examples
		ls README.rst* kubernetes/*.yaml* pkg-config cmake hello.c*' sh \
		"${pages[@]}"
}

# excludes KERNEL CONFIG...: DKMS does not try that kernel, for which it has a status of its own
excludes() {
	# shellcheck disable=SC2016
	in_root sh -ec '
		version=$1 kernel=$2
		shift 2
		dir=/root/kernel-$kernel
		mkdir $dir
		printf "CONFIG_%s\n" "$@" >$dir/.config
		status=0
		dkms build "rdma-post/$version" -k $kernel --kernelsourcedir $dir \
			--config $dir/.config || status=$?
		[ $status = 77 ]' sh "$new" "$@"
}

# Kernels without RDMA, and old ones; but not later ones
excluded() {
	local kernel regex
	excludes 6.99.0-none MODULES=y && excludes 5.10.0-none INFINIBAND=m \
		INFINIBAND_ADDR_TRANS=y INFINIBAND_USER_MEM=y || return 1
	regex=$(sed -n 's/^BUILD_EXCLUSIVE_KERNEL="\(.*\)"$/\1/p' "$top_dir/dkms.conf")
	for kernel in 5.19.17 6.0.12-none; do
		[[ ! $kernel =~ $regex ]] || return 1
	done
	for kernel in 6.1.0-50-amd64 6.9.1 6.10.0-rc1 7.0.0 10.2.0; do
		[[ $kernel =~ $regex ]] || return 1
	done
}

# The tests that the source package brings
source_tests() {
	local tests=$work/source-$new/rdma-post-$new/debian/tests
	in_root cp "$tests/build" "$tests/device" "$root/root/" && in_root /root/build
}

# What the quick start shows on a host, and after it what it shows in a guest. A device of
# software RoCE has the address that stands there.
quickstart_script() {
	cat <<-'END'
		set -e
		modprobe -a rdma_post rdma_rxe
		udevadm settle
		ip link add eth0 mtu 4200 type dummy
		ip link set eth0 up
		ip addr add 10.0.0.1/24 dev eth0
		rdma link add rxe0 type rxe netdev eth0
		cd "$(mktemp -d)"
		ln -s /usr/share/doc/librdma-post-dev/examples examples
		PATH=$PWD:$PATH
	END
	"$top_dir/selftests/tools/quickstart.sh" script \
		"From a program" "In a container" "In a guest"
}

quickstart() {
	"$top_dir/selftests/tools/quickstart.sh" compare \
		"From a program" "In a container" <"$logs/guest"
}

make_image() {
	local mb
	quickstart_script >"$work/quickstart" && in_root cp "$work/quickstart" "$root/root/" ||
		return
	in_root rm -rf "$root/build" "$root/repository/$old"
	mb=$(in_root sh -c 'du -xsm / | cut -f 1')
	in_root mke2fs -q -F -t ext4 -O ^has_journal -d "$root" "$work/image" \
		"$((mb + mb / 4 + 64))M"
}

guest() {
	make_image || return 1
	"$vm_dir/run.sh" -k "userland-$suite" -n none -M -m 2G -t 1200 \
		-o "$build_dir/vm/packages.$suite" -f "$here/guest.sh" \
		-q -drive -q "file=$work/image,format=raw,if=none,id=system,cache=unsafe" \
		-q -device -q virtio-blk-pci,drive=system -- ./guest.sh
}

remove() {
	local status modules
	in_root apt-get -y remove "${names[@]}" && status=$(in_root dkms status) &&
		modules=$(in_root find /lib/modules/ -name 'rdma_post.ko*') || return 1
	echo "status: $status, modules: $modules"
	[ -z "$status$modules" ]
}

# Nothing is left but the log, which is not in the list.
# shellcheck disable=SC2016
purge() {
	in_root apt-get -y purge "${names[@]}" || return 1
	in_root sh -c 'sh /root/files.sh | diff /root/files -' &&
		in_root dpkg-query -W -f '${Package}\n' >"$work/packages" &&
		grep -qx dkms "$work/packages" &&
		! grep -xF -f <(printf '%s\n' "${names[@]}") "$work/packages"
}

test_suite() {
	local tar
	suite=$1 subject=packages.$1
	work=$build_dir/packages/$1
	root=$work/root
	logs=$work/logs
	mkdir -p "$logs"
	tar=$("$vm_dir/userland.sh" "$1") || return
	release=$(cat "$cache_dir/kernels/userland-$1/release")
	check unpack unpack "$tar" && check build build "$new" &&
		check build_old build "$old" && check install_old install_old &&
		check upgrade upgrade && check documentation documentation &&
		check excluded excluded &&
		check source_tests source_tests || return
	check guest guest
	check quickstart quickstart
	check remove remove
	check purge purge
	rm -f "$work/image"
	in_root rm -rf "$root"
}

. "$here/lib.sh"
echo "TAP version 13"
echo "1..$((12 * ${#suites[@]}))"
for suite in "${suites[@]}"; do
	test_suite "$suite" || failed=1
done
exit "$failed"
