#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/debug-kernel.sh [debug|debug-6.1]
#
# Builds a kernel with KASAN, lockdep, kmemleak, fault injection, KCOV, gcov,
# rxe and siw out of Debian's source, of 7.2 (debug) or 6.1 (debug-6.1), into
# ${RDMA_POST_CACHE:-~/.cache/rdma_post}/kernels/NAME, with what modules need to
# be built for it. Takes a quarter of an hour or more on two CPUs; does nothing
# if it is there for this source, configuration and compiler.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

name=${1:-debug}
case $name in
-h | --help) usage && exit ;;
debug) version=7.2 ;;
debug-6.1) version=6.1 ;;
*) usage >&2 && exit 2 ;;
esac

config=$vm_dir/configs/debug.config
source_dir=$cache_dir/source/$version
link=$cache_dir/kernels/$name

# Without these the kernel does not do its work.
required="KASAN PROVE_LOCKING DEBUG_KMEMLEAK DEBUG_ATOMIC_SLEEP FAULT_INJECTION
	FAILSLAB KCOV RDMA_RXE RDMA_SIW VIRTIO_CONSOLE VIRTIO_NET PVH"

configure() {
	local option
	make -C "$source_dir" O="$dir/build" CC=gcc KCONFIG_ALLCONFIG="$config" \
		allnoconfig >"$dir/build.log"
	for option in $required; do
		grep -q "^CONFIG_$option=[ym]" "$dir/build/.config" ||
			die "$version: no CONFIG_$option with $config"
	done
	# Options come and go with versions: say which of ours are not there.
	comm -23 <(grep '=[ym]$' "$config" | sort) <(sort "$dir/build/.config") \
		>"$dir/missing"
	[ ! -s "$dir/missing" ] ||
		say "$version has not: $(tr '\n' ' ' <"$dir/missing")"
}

compile() {
	say "building $name from the source of $version; this takes a while" \
		"(progress in $dir/build.log)"
	# The PVH entry runs before KASAN has its shadow; 6.1 does not exclude it.
	nice -n 15 make -C "$dir/build" CC=gcc -j"$(nproc)" \
		KASAN_SANITIZE_enlighten.o=n vmlinux modules \
		>>"$dir/build.log" 2>&1 || {
		grep -m 20 -E 'error|\*\*\*' "$dir/build.log" >&2
		die "the build failed, see $dir/build.log"
	}
	make -C "$dir/build" CC=gcc INSTALL_MOD_PATH="$dir/root" modules_install \
		>>"$dir/build.log" 2>&1
	strip -o "$dir/vmlinux" "$dir/build/vmlinux"
	cp "$dir/build/System.map" "$dir/"
	rm -f "$dir/root"/lib/modules/*/{build,source}
}

# Keep what modules are built with.
prune() {
	find "$dir/build" \( -path "$dir/build/scripts" -o -path "$dir/build/tools" \) \
		-prune -o \( -name '*.o' -o -name '*.a' -o -name '*.ko' -o -name 'vmlinux*' \) \
		-type f -exec rm -f {} +
}

"$vm_dir/fetch.sh" "source-$version"
hash=$({
	cat "$config"
	sed -n '1,6p' "$source_dir/Makefile"
	gcc --version
} | sha256sum | cut -c1-12)
dir=$link-$hash
[ "$(readlink "$link" || true)" != "$name-$hash" ] || exit 0

need gcc make flex bison bc m4
start=$EPOCHREALTIME
lock "$cache_dir/locks/$name"
if [ ! -e "$dir/release" ]; then
	rm -rf "$dir"
	mkdir -p "$dir/build"
	configure
	compile
	prune
	cat "$dir/build/include/config/kernel.release" >"$dir/release"
	say "$name built in $(seconds_since "$start") s"
fi
ln -sfn "$name-$hash" "$link"
for old in "$link"-????????????; do
	[ "$old" = "$dir" ] || rm -rf "$old"
done
unlock
