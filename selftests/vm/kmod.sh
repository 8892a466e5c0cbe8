#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/kmod.sh [-s SOURCE] KERNEL...      6.1, 6.12, 7.2, debug, ...
#
# Builds rdma_post.ko for the guest kernels as build/kmod-KERNEL/rdma_post.ko,
# with W=1; any warning is an error. Each kernel has its own build directory
# with links to the sources. -s: build the module in this directory instead,
# into build/NAME-KERNEL.
#
# All clones compile under one path, so ccache finds what another clone compiled.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

source_dir=$top_dir prefix=kmod
while getopts hs: opt; do
	case $opt in
	s) source_dir=$(cd "$OPTARG" && pwd) prefix=$(basename "$source_dir") ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2 && exit 2; }

# List the sources of the module, relative to the source directory.
list_sources() {
	cd "$source_dir"
	if [ "$source_dir" = "$top_dir" ]; then
		ls Kbuild
		set -- kmod uapi
	else
		set -- .
	fi
	find "$@" \( -name '*.[chS]' -o -name Kbuild -o -name Makefile \) \
		! -name '*.mod.c'
}

link_sources() {
	local dir=$1 file
	find "$dir" -xtype l -delete
	list_sources | while read -r file; do
		[ ! -e "$dir/$file" ] || continue
		mkdir -p "$dir/$(dirname "$file")"
		ln -s "$source_dir/$file" "$dir/$file"
	done
}

# input_key HEADERS FLAGS: print a hash of all that a build reads: sources, compiler,
# kernel, and how it is called
input_key() {
	{
		printf '%s\n' "$@"
		stat -Lc '%n %i %s %Y' "$1/Makefile" "$1/Module.symvers" "$(gcc -print-prog-name=cc1)" \
			"$(command -v gcc)" "$(command -v as)" "$(command -v ld)"
		cat "$vm_dir/kmod.sh"
		list_sources | LC_ALL=C sort | (cd "$source_dir" && xargs -d '\n' sha256sum)
	} | sha256sum
}

build() {
	local kernel=$1 dir=$build_dir/$prefix-$1 start=$EPOCHREALTIME headers log key ko
	local path=$cache_dir/building/$prefix-$1 dir_lock status=0
	# The same sources make the same module, wherever they are, but for debug information.
	local cflags="-Werror -ffile-prefix-map=$path/="
	case $kernel in
	debug*)
		"$vm_dir/debug-kernel.sh" "$kernel"
		# Coverage is reported by source line.
		cflags+=" -g"
		;;
	*) "$vm_dir/fetch.sh" "$kernel" ;;
	esac
	headers=$(realpath "$cache_dir/kernels/$kernel/build")
	log=$dir/build.log
	mkdir -p "$dir"
	lock "$dir/.lock"
	dir_lock=$lock_fd
	key=$(input_key "$headers" "$cflags")
	ko=$(ls "$dir"/*.ko 2>/dev/null || true)
	if [ -n "$ko" ] && [ "$(cat "$dir/.key" 2>/dev/null)" = "$key" ]; then
		# run.sh warns of a module that is older than its sources.
		touch "$ko"
		exec {dir_lock}>&-
		return
	fi
	rm -f "$dir/.key"
	link_sources "$dir"
	mkdir -p "${path%/*}"
	lock "$cache_dir/locks/$prefix-$kernel"
	ln -sfn "$dir" "$path"
	# The headers may name a compiler that the host does not have, so set
	# CC. The guest's RDMA modules are the kernel's, whatever the host has.
	make -C "$headers" M="$path" CC=gcc OFA_DIR=none W=1 KCFLAGS="$cflags" \
		LDFLAGS_MODULE=--build-id=none -j"$(nproc)" modules >"$log" 2>&1 || status=$?
	unlock
	sed -i "s|$path/|$dir/|g" "$log"
	if [ "$status" != 0 ]; then
		grep -E 'error|warning|ERROR|WARNING|\*\*\*' "$log" >&2 || cat "$log" >&2
		rm -f "$dir"/*.ko
		die "the module does not build for $kernel (see $log)"
	fi
	if grep -vE 'pahole|BTF|compiler differs|^ *(The kernel was|You are using)' \
		"$log" | grep -iE 'warning|\berror' >&2; then
		# Delete the objects, so that the next build warns again.
		find "$dir" \( -name '*.o' -o -name '*.ko' \) -delete
		die "warnings in the build for $kernel (see $log)"
	fi
	echo "$key" >"$dir/.key"
	say "module for $kernel built in $(seconds_since "$start") s: $dir"
	exec {dir_lock}>&-
}

for kernel; do
	build "$kernel"
done
