#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/debug-kernel.sh [--cached] [debug|debug-6.1|debug-kcsan]
#
# Builds a kernel from Debian's source: with KASAN, lockdep, kmemleak, fault
# injection, KCOV, gcov, rxe and siw, of 7.2 (debug) or 6.1 (debug-6.1), or with
# KCSAN and lockdep (debug-kcsan, 7.2). Puts it into
# ${RDMA_POST_CACHE:-~/.cache/rdma_post}/kernels/NAME, with the files that
# module builds need. Takes 15 minutes or more on two CPUs; does nothing if the
# kernel exists for this source, configuration and compiler. --cached only looks:
# it says nothing, and exits 0 if that kernel exists, else 1.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

cached=''
[ "${1-}" != --cached ] || { cached=1 && shift; }
name=${1:-debug}
case $name in
-h | --help) usage && exit ;;
debug | debug-kcsan) version=7.2 ;;
debug-6.1) version=6.1 ;;
*) usage >&2 && exit 2 ;;
esac

configs=("$vm_dir/configs/debug.config")
[ "$name" != debug-kcsan ] || configs+=("$vm_dir/configs/kcsan.config")
source_dir=$cache_dir/source/$version
link=$cache_dir/kernels/$name
# 6.1 does not boot by PVH with KASAN: PVH's code is instrumented, but runs
# before KASAN has its shadow memory.
case $version in
6.1) image=bzImage ;;
*) image=vmlinux ;;
esac

# The options that a debug kernel must have.
required="PROVE_LOCKING DEBUG_ATOMIC_SLEEP DMA_API_DEBUG FAULT_INJECTION FAILSLAB
	FAIL_PAGE_ALLOC FAULT_INJECTION_USERCOPY RDMA_RXE RDMA_SIW VIRTIO_CONSOLE
	VIRTIO_NET PVH"
case $name in
debug-kcsan) required+=" KCSAN KCSAN_STRICT KCSAN_WEAK_MEMORY" ;;
*) required+=" KASAN UBSAN DEBUG_KMEMLEAK DEBUG_OBJECTS KCOV" ;;
esac

configure() {
	local option config=$dir/fragment
	cat "${configs[@]}" >"$config"
	make -C "$source_dir" O="$dir/build" CC=gcc KCONFIG_ALLCONFIG="$config" \
		allnoconfig >"$dir/build.log" 2>&1 ||
		die "the configuration failed, see $dir/build.log"
	for option in $required; do
		grep -q "^CONFIG_$option=[ym]" "$dir/build/.config" ||
			die "$version: no CONFIG_$option with ${configs[*]}"
	done
	# Some versions lack some options: report those that were not taken.
	comm -23 <(awk -F= '/^CONFIG/ { last[$1] = $0 } END { for (i in last) print last[i] }' \
		"$config" | grep '=[ym]$' | sort) <(sort "$dir/build/.config") >"$dir/missing"
	[ ! -s "$dir/missing" ] ||
		say "$version does not take $(wc -l <"$dir/missing") options of the" \
			"configuration, see $dir/missing"
}

compile() {
	say "building $name from the source of $version; this takes a while" \
		"(progress in $dir/build.log)"
	nice -n 15 make -C "$dir/build" CC=gcc -j"$(nproc)" "$image" modules \
		>>"$dir/build.log" 2>&1 || {
		grep -m 20 -E 'error|\*\*\*' "$dir/build.log" >&2
		die "the build failed, see $dir/build.log"
	}
	make -C "$dir/build" CC=gcc INSTALL_MOD_PATH="$dir/root" modules_install \
		>>"$dir/build.log" 2>&1 ||
		die "the modules cannot be installed, see $dir/build.log"
	case $image in
	vmlinux) strip -o "$dir/vmlinux" "$dir/build/vmlinux" ;;
	bzImage) cp "$dir/build/arch/x86/boot/bzImage" "$dir/" ;;
	esac
	cp "$dir/build/System.map" "$dir/"
	rm -f "$dir/root"/lib/modules/*/{build,source}
}

# Delete all objects except the tools that module builds need.
prune() {
	find "$dir/build" \( -path "$dir/build/scripts" -o -path "$dir/build/tools" \) \
		-prune -o \( -name '*.o' -o -name '*.a' -o -name '*.ko' -o -name 'vmlinux*' \) \
		-type f -exec rm -f {} +
}

# Set dir to that of this configuration, source and compiler.
find_dir() {
	[ -e "$source_dir/Makefile" ] && have gcc || return
	dir=$link-$({
		cat "${configs[@]}"
		sed -n '1,6p' "$source_dir/Makefile"
		gcc --version
	} | sha256sum | cut -c1-12)
}

if find_dir && [ -s "$dir/release" ]; then
	[ -z "$cached" ] || exit 0
	[ "$(readlink "$link" || true)" != "${dir##*/}" ] || exit 0
fi
[ -z "$cached" ] || exit 1

[ "$(id -u)" != 0 ] || "$vm_dir/deps.sh" guests
need gcc make flex bison bc m4
"$vm_dir/fetch.sh" "source-$version"
find_dir
start=$EPOCHREALTIME
lock "$cache_dir/locks/$name"
if [ ! -s "$dir/release" ]; then
	rm -rf "$dir"
	mkdir -p "$dir/build"
	configure
	compile
	prune
	cat "$dir/build/include/config/kernel.release" >"$dir/release"
	say "$name built in $(seconds_since "$start") s"
fi
ln -sfn "${dir##*/}" "$link"
for old in "$link"-????????????; do
	[ "$old" = "$dir" ] || rm -rf "$old"
done
unlock
