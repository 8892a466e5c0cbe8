#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/packages/rpm.sh
#
# Builds the RPM packages, looks at what they have, and builds the module from the akmod's
# source package for Debian's kernel 6.1, as akmods does. Prints TAP.

# The tests are functions that check calls by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"

"$vm_dir/deps.sh" build guests rpm && "$vm_dir/fetch.sh" 6.1 || exit 1
headers=$(realpath "$cache_dir/kernels/6.1/build")
release=$(cat "$cache_dir/kernels/6.1/release")
version=$(release_version)
dir=$build_dir/packages/rpm
subject=rpm logs=$dir/logs
rm -rf "$dir"
mkdir -p "$logs"
. "$top_dir/selftests/packages/lib.sh"

build() {
	"$top_dir/packaging/rpm.sh" "$dir/build"
}

# unpack NAME: unpack the package into $dir/NAME
unpack() {
	mkdir -p "$dir/$1"
	rpm2cpio "$dir"/build/RPMS/*/"$1-$version"-*.rpm | (cd "$dir/$1" && cpio -idm --quiet)
}

library() {
	local lib
	unpack librdma-post && unpack librdma-post-devel || return 1
	lib=$(dirname "$(find "$dir/librdma-post" -name librdma_post.so.1)")
	[ "$(readlink -f "$lib/rdma_post/librdmacm.so.1")" = \
		"$(readlink -f "$lib/librdma_post.so.1")" ] || return 1
	ls "$dir"/librdma-post-devel/usr/share/man/man3/rdma_post_recv_any.3* || return 1
	# It needs libc only.
	rpm -qp --requires "$dir"/build/RPMS/*/"librdma-post-$version"-*.rpm |
		grep '\.so' | tee "$dir/needs"
	[ -s "$dir/needs" ] || return 1
	! grep -vE '^(libc\.so\.6|ld-linux)' "$dir/needs" || return 1
	echo 'int main(void) { return !ibv_get_device_list(0); }' |
		gcc -x c -include infiniband/verbs.h -include rdma/rdma_post.h \
			-I "$dir/librdma-post-devel/usr/include" -o "$dir/program" - \
			-L "$lib" -l:librdma_post.so.1
}

tools() {
	local tools=$dir/rdma-post-tools
	unpack rdma-post-tools &&
		[ -x "$tools/usr/bin/rdma-post-run" ] &&
		[ -e "$tools/usr/lib/udev/rules.d/90-rdma-post.rules" ] &&
		[ ! -e "$tools/usr/lib/modules-load.d" ] &&
		ls "$tools"/usr/share/man/man{1/rdma-post-run.1,4/rdma_post.4,7/rdma_post.7}* &&
		ls "$tools"/usr/share/man/man8/rdma-post.8*
}

# The documentation, and what comes with the headers
documentation() {
	local doc page
	unpack rdma-post-doc || return 1
	doc=$(find "$dir/rdma-post-doc" -type d -name html)
	for page in "${pages[@]}"; do
		[ -s "$doc/$page.html" ] || return 1
	done
	[ -s "$doc/../CHANGELOG.md" ] || return 1
	doc=$(dirname "$(find "$dir/librdma-post-devel/usr/share/doc" -name hello.c)")
	ls "$doc"/{README.rst,kubernetes/pod.yaml,cmake/CMakeLists.txt}
}

akmod() {
	local source ko
	unpack akmod-rdma-post &&
		[ -e "$dir/akmod-rdma-post/usr/lib/modules-load.d/rdma-post.conf" ] &&
		source=$(readlink -e "$dir/akmod-rdma-post/usr/src/akmods/rdma-post-kmod.latest") ||
		return 1
	rpmbuild --rebuild --nodeps --define "_topdir $dir/kmod" \
		--define "kernels $release" --define "kernel_source $headers" "$source" || return 1
	mkdir -p "$dir/kmod/root"
	rpm2cpio "$dir"/kmod/RPMS/*/"kmod-rdma-post-$release-$version"-*.rpm |
		(cd "$dir/kmod/root" && cpio -idm --quiet)
	ko=$dir/kmod/root/lib/modules/$release/extra/rdma-post/rdma_post.ko
	[ "$(modinfo -F version "$ko")" = "$version" ] &&
		[[ $(modinfo -F vermagic "$ko") = "$release "* ]]
}

echo "TAP version 13"
echo "1..5"
check build build
check library library
check tools tools
check documentation documentation
check akmod akmod
exit "$failed"
