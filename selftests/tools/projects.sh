#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/projects.sh DIRECTORY
#
# Installs the library in a new tree, DIRECTORY/root, and builds two projects that find
# it there, by CMake and by pkg-config: copies of examples/cmake and examples/pkg-config
# outside of the source tree. Leaves their programs in DIRECTORY/programs. Exits with
# status 1 if one needs other libraries than it should, or if pkg-config or CMake
# find another version than the release's.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"
[ $# = 1 ] || { usage >&2 && exit 2; }
dir=$(realpath "$1")
lib=/usr/lib/$(gcc -print-multiarch)

# needs PROGRAM COUNT: so many of the needed libraries are this one
needs() {
	local count
	count=$(objdump -p "$1" | grep -c 'NEEDED *librdma_post\.so\.1$' || true)
	[ "$count" = "$2" ] || die "$1: needs librdma_post.so.1 $count times"
}

mkdir "$dir/root" "$dir/src" "$dir/programs"
make -s -C "$top_dir/userlib" BUILD="$build_dir" DESTDIR="$dir/root" PREFIX=/usr \
	LIBDIR="$lib" install
cp -r "$top_dir"/examples/{cmake,pkg-config,hello.c} "$dir/src"

export PKG_CONFIG_LIBDIR=$dir/root$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/root
release=$(release_version)
pkg-config --exact-version="$release" rdma_post || die "pkg-config: not version $release"

cmake -S "$dir/src/cmake" -B "$dir/src/build" -DCMAKE_PREFIX_PATH="$dir/root/usr"
cmake --build "$dir/src/build"
# Static programs need the same C library (getaddrinfo); the linker says so.
make -C "$dir/src/pkg-config"

for kind in hello hello_static; do
	cp "$dir/src/build/$kind" "$dir/programs/cmake_$kind"
	cp "$dir/src/pkg-config/$kind" "$dir/programs/pkg_config_$kind"
done
needs "$dir/programs/cmake_hello" 1
needs "$dir/programs/cmake_hello_static" 0
needs "$dir/programs/pkg_config_hello" 1
needs "$dir/programs/pkg_config_hello_static" 0
