#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/interop/build.sh
#
# Builds Valkey with RDMA from sid's source package; Debian's has none. Prints the directory
# of its programs, in ${RDMA_POST_CACHE:-~/.cache/rdma_post}/built. Needs no root.

set -euo pipefail
# shellcheck source=../vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"
# shellcheck source=../vm/apt.sh
. "$vm_dir/apt.sh"

programs=(valkey-server valkey-cli valkey-benchmark)

build() {
	local dir=$1 name
	need apt-get dpkg-source gcc make strip
	apt_source sid "$dir/source" valkey
	say "building valkey"
	make -s -j"$(nproc)" -C "$dir"/source/*/src BUILD_RDMA=yes MALLOC=libc USE_SYSTEMD=no \
		"${programs[@]}" >"$dir/log" 2>&1 ||
		{ tail -n 20 "$dir/log" && die "cannot build valkey"; }
	for name in "${programs[@]}"; do
		strip -o "$dir/$name" "$dir"/source/*/src/"$name"
	done
	rm -r "$dir/source"
}

final=$cache_dir/built/valkey-$(sha256sum <"$0" | cut -c1-12)
make_once valkey built "$final" fill "$final" build
echo "$final"
