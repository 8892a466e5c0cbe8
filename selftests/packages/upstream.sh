#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/packages/upstream.sh
#
# Puts the module into the source of Linux 7.2 by packaging/upstream.sh, and builds it there
# as a part of the kernel, with the debug kernel's configuration and W=1. Prints TAP.

# The tests are functions that check calls by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"

"$vm_dir/deps.sh" build guests && "$vm_dir/fetch.sh" source-7.2 || exit 1
dir=$build_dir/packages/upstream
tree=$dir/linux
module=drivers/infiniband/ulp/rdma_post
subject=upstream logs=$dir/logs
rm -rf "$dir"
mkdir -p "$logs"
# Links keep the source in the cache as it is.
cp -rs "$(realpath "$cache_dir/source/7.2")" "$tree" || exit 1
. "$top_dir/selftests/packages/lib.sh"

# Print the files that are no links to the source, with their checksums.
written() {
	find "$tree" -type f -exec sha256sum {} + | sort -k 2
}

puts_in() {
	"$top_dir/packaging/upstream.sh" "$tree" && written >"$dir/written" &&
		[ -s "$tree/$module/Kconfig" ] && [ ! -e "$tree/$module/compat" ]
}

# A second run leaves the same.
puts_in_again() {
	"$top_dir/packaging/upstream.sh" "$tree" && written | diff "$dir/written" -
}

refuses_other_directory() {
	mkdir "$dir/other" || return 1
	! "$top_dir/packaging/upstream.sh" "$dir/other" && rmdir "$dir/other"
}

kernel() {
	make -C "$tree" O="$dir/build" CC=gcc -j"$(nproc)" "$@"
}

configure() {
	cat "$vm_dir/configs/debug.config" - <<<CONFIG_RDMA_POST=m >"$dir/fragment"
	mkdir "$dir/build" && kernel KCONFIG_ALLCONFIG="$dir/fragment" allnoconfig &&
		grep -x CONFIG_RDMA_POST=m "$dir/build/.config"
}

# Sources of the kernel's own tools may have warnings, but not the module.
builds() {
	kernel modules_prepare && kernel W=1 "$module/" >"$dir/build.log" 2>&1
	local status=$?
	cat "$dir/build.log"
	[ "$status" = 0 ] && ! grep -iE 'warning|error:' "$dir/build.log" &&
		nm "$dir/build/$module/rdma_post.o" | grep ' T init_module$'
}

# The exceptions are those of lint.sh, and of macros that make declarations of rows.
checkpatch() {
	local files
	cd "$tree" || return 1
	mapfile -t files < <(find "$module" -name '*.[ch]' ! -name trace.h)
	[ ${#files[@]} != 0 ] && perl scripts/checkpatch.pl --strict --terse --no-summary \
		--max-line-length=100 \
		--ignore UNCOMMENTED_DEFINITION,TRAILING_SEMICOLON,MACRO_ARG_UNUSED \
		-f "${files[@]}" "$module"/{Kconfig,Makefile} \
		include/uapi/rdma/rdma_post_abi.h Documentation/infiniband/rdma_post.rst
}

# MAINTAINERS names each file's maintainers.
maintainers() {
	local file
	cd "$tree" || return 1
	! perl scripts/get_maintainer.pl --self-test=sections 2>&1 | grep -i rdma_post || return 1
	for file in "$module"/{Kconfig,post/send.c} include/uapi/rdma/rdma_post_abi.h \
		Documentation/infiniband/rdma_post.rst; do
		perl scripts/get_maintainer.pl --no-git --no-git-fallback -f "$file" |
			tee "$dir/maintainers"
		grep '(maintainer:RDMA_POST DRIVER)' "$dir/maintainers" &&
			grep '^linux-rdma@' "$dir/maintainers" || return 1
	done
}

# The pages that comments name are there.
names_pages() {
	local file
	grep -rhoE 'Documentation/[a-z/_-]+(\.rst)?' "$tree/$module" \
		"$tree/include/uapi/rdma/rdma_post_abi.h" | sort -u | tee "$dir/pages"
	[ -s "$dir/pages" ] || return 1
	while read -r file; do
		[ -e "$tree/$file" ] || return 1
	done <"$dir/pages"
}

echo "TAP version 13"
echo "1..8"
check refuses_other_directory refuses_other_directory
check puts_in puts_in
check puts_in_again puts_in_again
check names_pages names_pages
check maintainers maintainers
check checkpatch checkpatch
check configures configure
check builds builds
[ "$failed" = 1 ] || rm -rf "$tree" "$dir/build"
exit "$failed"
