#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: fetch_test.sh
#
# Tests on this host, without a network, what vm/fetch.sh says and leaves behind when
# Debian has a kernel no more, a download breaks, the disk is full, or it is killed, and
# what debug-kernel.sh --cached says; and what interop/build.sh says if a source is missing
# or broken. Prints TAP.
#
# apt and dpkg-deb are programs of the test: a package is a tar archive, a source a directory,
# and files in suites/SUITE tell what a suite has. BREAK says what is to go wrong.

# Functions are called by name.
# shellcheck disable=SC2317

set -u
# shellcheck source=../vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export PATH=$dir/bin:$PATH BREAK=''

# run TEST: in a directory and cache of its own
run() {
	mkdir "$1"
	cd "$1" || exit
	export TEST_DIR=$PWD RDMA_POST_CACHE=$PWD/cache
	mkdir -p suites/{bookworm,sid,forky,trixie-backports}
	: >out
	if "$1"; then
		: >passed
	else
		echo "status ${status-}" >>out
	fi
}

# fetch ARGUMENT...: run it; status and out have what it says
fetch() {
	"$vm_dir/fetch.sh" "$@" >out 2>&1
	status=$?
}

# says STATUS SENTENCE [PROGRAM]: the status and the last line, a pattern, of the last fetch
says() { [ "$status" = "$1" ] && tail -n 1 out | grep -qx -e "vm: ${3-fetch}: $2"; }

nothing_left() { ! [ -e "$RDMA_POST_CACHE/fetch.tmp" ]; }

# kernel SUITE RELEASE...: let the suite have them
kernel() {
	local suite=$1
	shift
	printf 'linux-image-%s\n' "$@" "${@/%amd64/cloud-amd64}" >>"suites/$suite/names"
	printf 'linux-headers-%s\n' "$@" >>"suites/$suite/names"
}

# source_package SUITE VERSION MIB: let it have a source, with a file of zeros
source_package() {
	local tree=linux-source-$2
	mkdir -p "$tree" usr/src
	echo "VERSION = $2" >"$tree/Makefile"
	head -c "$3M" /dev/zero >"$tree/zeros"
	tar -cJf "usr/src/$tree.tar.xz" "$tree" || return
	echo "$tree" >>"suites/$1/names"
	tar -cf "suites/$1/$tree.deb" usr
	rm -rf usr "$tree"
}

make_programs() {
	mkdir bin
	cat >bin/apt-get <<-'END'
		#!/bin/sh
		case $* in
		*indextargets*)
			echo "Debian|http://nowhere.invalid/debian|"
			exit
			;;
		esac
		for arg; do
			[ "${arg#Dir::Cache=}" = "$arg" ] || suite=${arg##*/}
		done
		[ -n "$suite" ] || exit 0
		while [ "$1" != update ] && [ "$1" != download ] && [ "$1" != source ]; do
			shift
		done
		case $BREAK:$1 in
		"no $suite:update")
			echo "E: The repository 'http://nowhere.invalid/debian $suite Release'" \
				"does not have a Release file." >&2
			exit 100
			;;
		$1:*)
			echo "E: Failed to fetch http://nowhere.invalid/x  404  Not Found" >&2
			echo "E: Some files failed to download." >&2
			exit 100
			;;
		killed:download)
			echo half >"linux-source-7.2_1.deb"
			kill -9 0
			;;
		esac
		case $1 in
		update) exit ;;
		source)
			cp -r "$TEST_DIR/suites/$suite/$2" . 2>/dev/null && exit
			echo "E: Unable to find a source package for $2" >&2
			exit 100
			;;
		esac
		shift
		for package; do
			cp "$TEST_DIR/suites/$suite/$package.deb" "${package}_1.deb" || exit
		done
	END
	cat >bin/apt-cache <<-'END'
		#!/bin/sh
		for arg; do
			[ "${arg#Dir::Cache=}" = "$arg" ] || suite=${arg##*/}
		done
		case $* in
		*pkgnames*) cat "$TEST_DIR/suites/$suite/names" 2>/dev/null || : ;;
		*depends*) printf '%s\n' "$@" | grep ^linux- ;;
		esac
	END
	cat >bin/dpkg-deb <<-'END'
		#!/bin/sh
		mkdir -p "$3"
		tar -C "$3" -xf "$2" || exit
		[ "$BREAK" != killed-unpack ] || {
			echo half >"$3/usr/src/linux-source-7.2.tar.xz"
			kill -9 0
		}
	END
	chmod +x bin/*
}

unknown_name() {
	local name
	for name in nonsense source-nonsense rdma-nonsense; do
		fetch "$name"
		says 2 '.*nonsense: kernels are 6.1, 6.12 and 7.2' && [ "$(wc -l <out)" = 1 ] ||
			return
	done
}

# Nothing can be downloaded, so that its attempt shows what was found where.
newest_of_first_suite() {
	kernel sid 7.3.1+deb14-amd64
	kernel forky 7.2.9+deb14-amd64 7.2.10+deb14-amd64 7.3.1+deb14-amd64 7.20.1-amd64
	kernel trixie-backports 7.2.12+deb13-amd64
	BREAK=download fetch 7.2
	says 4 'cannot download linux-image-7.2.10+deb14-amd64 and 1 more from forky: .*' &&
		nothing_left || return
	kernel bookworm 6.1.0-9-amd64 6.1.0-56-amd64 6.12.1+deb12-amd64
	BREAK=download fetch 6.1
	says 4 'cannot download linux-image-6.1.0-56-amd64 and 1 more from bookworm: .*'
}

# Headers can be there before the image, or after it.
image_without_headers() {
	kernel sid 7.2.9+deb14-amd64
	echo linux-image-7.2.10+deb14-amd64 >>suites/sid/names
	echo linux-headers-7.2.11+deb14-amd64 >>suites/sid/names
	BREAK=download fetch 7.2
	says 4 'cannot download linux-image-7.2.9+deb14-amd64 and 1 more from sid: .*'
}

no_suite_has_it() {
	kernel sid 7.3.0+deb14-amd64 7.3.1+deb14-amd64
	fetch 7.2
	says 3 'no suite of Debian has 7.2 now (sid has 7.3.1)' && nothing_left || return
	fetch source-7.2
	says 3 'no suite of Debian has 7.2 now (sid has 7.3.1)' && nothing_left
}

suite_gone() {
	kernel forky 7.3.4+deb14-amd64
	BREAK='no sid' fetch 7.2
	says 3 'no suite of Debian has 7.2 now (forky has 7.3.4)'
}

# That no suite is there tells of the mirror, not of the kernel.
all_suites_gone() {
	BREAK='no bookworm' fetch 6.1
	says 4 'cannot download the package lists of bookworm: The repository .*'
}

lists_fail() {
	kernel sid 7.2.9+deb14-amd64
	BREAK=update fetch 7.2
	says 4 "cannot download the package lists of sid: Failed to fetch .* 404 .*"
}

download_fails() {
	source_package sid 7.2 0 || return
	BREAK=download fetch source-7.2
	says 4 'cannot download linux-source-7.2 from sid: Failed to fetch .*  404  Not Found' &&
		nothing_left && fetch source-7.2 && [ "$status" = 0 ]
}

broken_package() {
	source_package sid 7.2 0 || return
	echo half >suites/sid/linux-source-7.2.deb
	fetch source-7.2
	says 4 'cannot unpack linux-source-7.2 from sid: tar: .*' && nothing_left
}

broken_tarball() {
	local src=$RDMA_POST_CACHE/source/deb-7.2/usr/src
	mkdir -p "$src"
	echo half >"$src/linux-source-7.2.tar.xz"
	fetch source-7.2
	says 4 "cannot unpack $src/linux-source-7.2.tar.xz: tar: .*" && nothing_left
}

# killed BREAK: killed at this place, it begins anew and comes to its end
killed() {
	source_package sid 7.2 0 || return
	{
		BREAK=$1 setsid -w "$vm_dir/fetch.sh" source-7.2 >out 2>&1
		status=$?
	} 2>/dev/null
	[ "$status" = 137 ] || return
	fetch source-7.2
	[ "$status" = 0 ] && nothing_left &&
		grep -qx 'VERSION = 7.2' "$RDMA_POST_CACHE/source/7.2/Makefile"
}

killed_in_download() { killed killed; }
killed_in_unpack() { killed killed-unpack; }

can_mount() {
	unshare -rm true 2>out && return
	echo "no user namespaces: $(cat out)" >skipped
	return 1
}

# The source is 8 MiB, its archive some KiB.
full_disk() {
	can_mount || return
	source_package sid 7.2 8 || return
	mkdir "$RDMA_POST_CACHE"
	# shellcheck disable=SC2016
	unshare -rm sh -c 'mount -t tmpfs -o size=4m tmpfs "$RDMA_POST_CACHE" || exit
		"$0" source-7.2
		status=$?
		ls "$RDMA_POST_CACHE/fetch.tmp" "$RDMA_POST_CACHE/source/7.2" && exit 1
		exit $status' "$vm_dir/fetch.sh" >out 2>&1
	status=$?
	sed -i '/^ls: /d' out
	says 4 "no space left in $RDMA_POST_CACHE ([0-3] MB free)"
}

# The disk is full before the first step.
full_before() {
	can_mount || return
	source_package sid 7.2 0 || return
	mkdir "$RDMA_POST_CACHE"
	# shellcheck disable=SC2016
	unshare -rm sh -c 'mount -t tmpfs -o size=64k tmpfs "$RDMA_POST_CACHE" || exit
		mkdir "$RDMA_POST_CACHE/locks"
		cat /dev/zero >"$RDMA_POST_CACHE/zeros" 2>/dev/null
		exec "$0" source-7.2' "$vm_dir/fetch.sh" >out 2>&1
	status=$?
	says 4 "no space left in $RDMA_POST_CACHE (0 MB free)"
}

# cached STATUS: debug-kernel.sh --cached says nothing
cached() {
	"$vm_dir/debug-kernel.sh" --cached debug >out 2>&1
	status=$?
	[ "$status" = "$1" ] && [ ! -s out ]
}

debug_kernel() {
	local source=$RDMA_POST_CACHE/source/7.2 kernel
	cached 1 || return
	mkdir -p "$source"
	printf '%s\n' 'VERSION = 7' 'PATCHLEVEL = 2' 'SUBLEVEL = 13' >"$source/Makefile"
	cached 1 || return
	kernel=$RDMA_POST_CACHE/kernels/debug-$({
		cat "$vm_dir/configs/debug.config" "$source/Makefile"
		gcc --version
	} | sha256sum | cut -c 1-12)
	mkdir -p "$kernel"
	cached 1 || return
	echo 7.2.13 >"$kernel/release"
	cached 0 || return
	sed -i s/13/14/ "$source/Makefile"
	cached 1
}

# build: run interop/build.sh
build() {
	"$vm_dir/../interop/build.sh" >out 2>&1
	status=$?
}

nothing_built() { ! compgen -G "$RDMA_POST_CACHE/built/*/valkey-*" >/dev/null; }

no_source() {
	build
	says 4 'cannot download .* valkey from sid: Unable to find a source package .*' build &&
		nothing_built
}

source_lists_fail() {
	BREAK=update build
	says 4 'cannot download .* valkey from sid: Failed to fetch .*  404  Not Found' build &&
		nothing_built
}

# A build that fails leaves no programs, so that the next one begins anew; a built one is kept.
source_builds() {
	local src=suites/sid-source/valkey/src
	mkdir -p "$src"
	printf 'valkey-%%:\n\tfalse\n' >"$src/Makefile"
	build
	says 1 'cannot build valkey' build && nothing_built || return
	printf 'valkey-%%:\n\tcp /bin/true $@\n' >"$src/Makefile"
	build
	[ "$status" = 0 ] && "$(tail -n 1 out)/valkey-server" || return
	rm -r "$src"
	build
	[ "$status" = 0 ] && [ "$(wc -l <out)" = 1 ]
}

tests=(unknown_name newest_of_first_suite image_without_headers no_suite_has_it
	suite_gone all_suites_gone lists_fail download_fails broken_package broken_tarball
	killed_in_download killed_in_unpack full_disk full_before debug_kernel no_source
	source_lists_fail source_builds)
make_programs
for test in "${tests[@]}"; do
	run "$test" &
done
wait
subject=fetch
# shellcheck source=../lib/tap.sh
. "$top_dir/selftests/lib/tap.sh"
evidence() { cat "$test/out"; }
for test in "${tests[@]}"; do
	if [ -e "$test/skipped" ]; then
		skip "$test" "$(cat "$test/skipped")"
	else
		test_ "$test" [ -e "$test/passed" ]
	fi
done
end_tap
