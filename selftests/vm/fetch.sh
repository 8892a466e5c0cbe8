#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/fetch.sh 6.1|6.12|7.2 ...       kernel, modules, headers
#        selftests/vm/fetch.sh source-6.1|source-7.2  kernel source
#        selftests/vm/fetch.sh kselftest              kselftest headers, checkpatch
#        selftests/vm/fetch.sh rdma-SUITE             libibverbs and its users
#
# Downloads Debian's kernels into ${RDMA_POST_CACHE:-~/.cache/rdma_post}:
#   kernels/VERSION/{release,vmlinux,root,build}   source/VERSION
#   kselftest/   scripts/   rdma/SUITE
# Downloads nothing that exists already. Needs no root, and does not change the
# system's packages and apt configuration. Stops at the first thing that it cannot
# get, and its last line says why. The status is then 2 if there is no such thing,
# 3 if no suite of Debian has this kernel now, and 4 if a download failed, what came
# cannot be used, or there is no space.

set -euo pipefail
# A failure in $() ends the script.
shopt -s inherit_errexit
. "$(dirname "$0")/lib.sh"
. "$vm_dir/apt.sh"
. "$vm_dir/vmlinux.sh"

# Print the suites that may have a kernel.
suites_of() {
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo bookworm-backports bookworm trixie ;;
	7.2) echo sid forky trixie-backports ;;
	*) die_status=2 die "$1: kernels are 6.1, 6.12 and 7.2" ;;
	esac
}

# find_suite VERSION FUNCTION: set suite to the first for which the function prints
# something, and found to that
find_suite() {
	local version=$1 lookup=$2 suites newest=''
	suites=$(suites_of "$version")
	for suite in $suites; do
		if ! apt_read "$suite"; then
			say "Debian has no $suite now"
			continue
		fi
		found=$("$lookup" "$suite" "${version//./\\.}")
		[ -z "$found" ] || return 0
		[ -n "$newest" ] || newest=$(apt_kernel "$suite" '[0-9]+' |
			sed "s/[+-].*//; s/.*/ ($suite has &)/")
	done
	[ -n "$newest" ] || give_up "download the package lists of $suites"
	die_status=3 die "no suite of Debian has $version now$newest"
}

# Wrap the build tools that need a newer C library than the host's, so that they
# run with the library of their suite. The root will be moved to another place.
wrap_foreign_tools() {
	local root=$1 place=$2 libs=$2/usr/lib/x86_64-linux-gnu tool
	find "$root"/usr/lib/linux-kbuild-* -type f -perm -100 | while read -r tool; do
		head -c 4 "$tool" | grep -q ELF || continue
		ldd "$tool" 2>&1 | grep 'not found' >/dev/null || continue
		mv "$tool" "$tool.elf"
		printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' \
			"$libs/ld-linux-x86-64.so.2" "$libs" \
			"$place${tool#"$root"}.elf" >"$tool"
		chmod +x "$tool"
	done
}

# The configuration has the features of Debian's compiler; remove those that the
# host's compiler lacks.
match_compiler() {
	local headers=$1 name version
	version=$(printf '__GNUC__ __GNUC_MINOR__ __GNUC_PATCHLEVEL__\n' |
		gcc -E -P - | awk '{ print $1 * 10000 + $2 * 100 + $3 }')
	grep -q "^CONFIG_GCC_VERSION=$version$" "$headers/include/config/auto.conf" &&
		return
	for name in $(unsupported_features "$version"); do
		sed -i "/^CONFIG_CC_HAS_$name=/d" "$headers/include/config/auto.conf"
		sed -i "/^#define CONFIG_CC_HAS_$name /d" \
			"$headers/include/generated/autoconf.h"
	done
	sed -i "s/^\(CONFIG_GCC_VERSION=\).*/\1$version/" \
		"$headers/include/config/auto.conf"
	sed -i "s/^\(#define CONFIG_GCC_VERSION \).*/\1$version/" \
		"$headers/include/generated/autoconf.h"
}

# Print the features that this release of gcc does not have yet.
unsupported_features() {
	local version=$1
	[ "$version" -ge 130000 ] || echo ASSUME
	[ "$version" -ge 140000 ] || echo MIN_FUNCTION_ALIGNMENT
	[ "$version" -ge 150000 ] || echo COUNTED_BY MULTIDIMENSIONAL_NONSTRING
	[ "$version" -ge 160000 ] || echo COUNTED_BY_PTR
}

fix_headers() {
	local root=$1 release=$2 final=$3 headers
	headers=$root/usr/src/linux-headers-$release
	sed -i "s|/usr/src/|$final/root/usr/src/|g" "$headers/Makefile"
	# Without vmlinux the build makes no BTF, which would need pahole.
	rm -f "$headers/vmlinux"
	grep -q '^export.*CC\|gcc-[0-9]' "$headers/.kernelvariables" 2>/dev/null &&
		sed -i 's/gcc-[0-9][0-9]*/gcc/g' "$headers/.kernelvariables"
	match_compiler "$headers"
	[ ! -e "$root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" ] ||
		wrap_foreign_tools "$root" "$final/root"
}

unpack_kernel() {
	local final=$1 deb release image
	mkdir "$tmp/root"
	for deb in "$tmp"/debs/*.deb; do
		dpkg-deb -x "$deb" "$tmp/root"
	done
	rm -rf "$tmp/debs"
	[ -e "$tmp/root/lib" ] || ln -s usr/lib "$tmp/root/lib"
	release=$(basename "$tmp"/root/lib/modules/*)
	for image in "$tmp/root/boot/vmlinuz-$release" \
		"$tmp/root/lib/modules/$release/vmlinuz"; do
		[ ! -f "$image" ] || extract_vmlinux "$image" "$tmp/vmlinux"
	done
	[ -s "$tmp/vmlinux" ] || die "no kernel image in the packages"
	# depmod warns of lists that some packages lack and nothing here needs.
	depmod -b "$tmp/root" "$release"
	fix_headers "$tmp/root" "$release" "$final"
	ln -s "root/usr/src/linux-headers-$release" "$tmp/build"
	echo "$release" >"$tmp/release"
}

fetch_kernel() {
	local name=$1 final=$cache_dir/kernels/$1 suite found packages release
	need apt-get dpkg-deb xz readelf depmod gcc
	find_suite "$name" apt_kernel
	packages=$(apt_kernel_packages "$suite" "$found")
	# shellcheck disable=SC2086
	apt_download "$suite" "$tmp/debs" $packages
	# The build tools of newer suites need their libraries.
	release=${suite%-backports}
	if [ "$release" != bookworm ]; then
		[ "$release" = "$suite" ] || apt_update "$release"
		apt_download "$release" "$tmp/debs" \
			libc6 libelf1t64 libssl3t64 zlib1g libzstd1
	fi
	say "unpacking $name"
	attempt "unpack $found from $suite" unpack_kernel "$final"
	rm -rf "$final"
	mv "$tmp" "$final"
}

# apt_source SUITE VERSION: print the name of the package, if the suite has it
apt_source() {
	local names
	names=$(apt_names "$1" linux-source-)
	grep -x "linux-source-$2" <<<"$names" || true
}

# Print the path of a version's source tarball; download it if the host has
# none.
source_tarball() {
	local version=$1 suite found dir=$cache_dir/source/deb-$1 tarball
	for tarball in "/usr/src/linux-source-$version.tar.xz" \
		"$dir/usr/src/linux-source-$version.tar.xz"; do
		if [ -r "$tarball" ]; then
			echo "$tarball"
			return
		fi
	done
	find_suite "$version" apt_source
	apt_download "$suite" "$tmp/debs" "$found"
	attempt "unpack $found from $suite" dpkg-deb -x "$tmp"/debs/*.deb "$tmp/deb"
	rm -rf "$dir"
	mv "$tmp/deb" "$dir"
	echo "$tarball"
}

# unpack_source TARBALL [PATTERN...]: unpack it, or some of it, into source
unpack_source() {
	local tarball=$1
	shift
	say "unpacking $(basename "$tarball")"
	mkdir "$tmp/source"
	attempt "unpack $tarball" tar -C "$tmp/source" --strip-components=1 \
		--wildcards -xf "$tarball" "$@"
}

fetch_source() {
	local version=$1 final=$cache_dir/source/$1 tarball
	tarball=$(source_tarball "$version")
	unpack_source "$tarball"
	rm -rf "$final"
	mv "$tmp/source" "$final"
}

fetch_kselftest() {
	local tarball
	tarball=$(source_tarball 6.1)
	unpack_source "$tarball" \
		'*/tools/testing/selftests/kselftest*.h' \
		'*/tools/testing/selftests/kselftest/*' \
		'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' \
		'*/scripts/const_structs.checkpatch' '*/scripts/kernel-doc'
	rm -rf "$cache_dir/kselftest" "$cache_dir/scripts"
	mv "$tmp/source/scripts" "$cache_dir/scripts"
	mv "$tmp/source/tools/testing/selftests" "$cache_dir/kselftest"
}

unpack_rdma() {
	local deb
	for deb in "$tmp"/debs/*.deb; do
		dpkg-deb -x "$deb" "$tmp"
		dpkg-deb -W "$deb" >>"$tmp/packages"
	done
	rm -rf "${tmp:?}"/debs "${tmp:?}"/usr/share
}

# Fetch a suite's libraries, headers and programs, for symbols.sh and check.sh.
fetch_rdma() {
	local suite=$1 final=$cache_dir/rdma/$1 names
	local packages=(libibverbs1 libibverbs-dev librdmacm-dev ibverbs-providers
		ibverbs-utils rdmacm-utils libc6)
	need apt-get dpkg-deb
	case $suite in
	bookworm) packages+=(librdmacm1) ;;
	*) packages+=(librdmacm1t64) ;;
	esac
	apt_update "$suite"
	# A suite may lack some of their users.
	names=$(apt_names "$suite")
	mapfile -t -O ${#packages[@]} packages < <(grep -xE "perftest|fio|librados2|\
librpma0|libfabric1|libiscsi7|qperf|tgt" <<<"$names")
	apt_download "$suite" "$tmp/debs" "${packages[@]}"
	say "unpacking the packages of $suite"
	attempt "unpack the packages of $suite" unpack_rdma
	rm -rf "$final"
	mv "$tmp" "$final"
}

begin() {
	rm -rf "$tmp"
	mkdir "$tmp"
	echo >"$tmp/begun"
	rm "$tmp/begun"
}

fetch() {
	local what=$1
	case $what in
	kselftest) set -- fetch_kselftest "$cache_dir/kselftest/kselftest_harness.h" ;;
	source-*)
		suites_of "${what#source-}" >/dev/null
		set -- fetch_source "$cache_dir/source/${what#source-}/Makefile" \
			"${what#source-}"
		;;
	rdma-bookworm | rdma-trixie | rdma-sid)
		set -- fetch_rdma "$cache_dir/rdma/${what#rdma-}/packages" \
			"${what#rdma-}"
		;;
	*)
		suites_of "$what" >/dev/null
		set -- fetch_kernel "$cache_dir/kernels/$what/release" "$what"
		;;
	esac
	[ ! -e "$2" ] || return 0
	attempt "write to $cache_dir" \
		mkdir -p "$cache_dir"/{locks,kernels,source,rdma}
	# One at a time, because fetches of a suite share apt's lists.
	make_once "$what" fetch "$2" get "$1" "${@:3}"
}

# get FUNCTION [ARGUMENT]: what was begun in $tmp is moved to its place when it is complete
get() {
	trap 'rm -rf "$tmp"' EXIT
	attempt "write to $cache_dir" begin
	"$@"
	rm -rf "$tmp"
	trap - EXIT
}

tmp=$cache_dir/fetch.tmp
case ${1:--h} in
-h | --help)
	usage
	exit
	;;
esac
for what; do
	fetch "$what"
done
