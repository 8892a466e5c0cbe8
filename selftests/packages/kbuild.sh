#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/packages/kbuild.sh
#
# Tests what Kbuild does with kernels that lack something, which it refuses with a sentence,
# and with hosts that have the RDMA modules of MLNX_OFED or DOCA-OFED, for which it builds.
# OFED is a made-up tree of that shape, for the kernel 6.1: its RDMA headers with some
# names of 6.2, and other checksums of its RDMA symbols. Prints TAP.

# The tests are functions that check calls by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"

"$vm_dir/fetch.sh" 6.1 || exit 1
headers=$(realpath "$cache_dir/kernels/6.1/build")
release=$(cat "$cache_dir/kernels/6.1/release")
dir=$build_dir/packages/kbuild
root=$dir/root
ofa=$root/usr/src/ofa_kernel
tree=$ofa/x86_64/$release
modules=$root/lib/modules/$release
rm -rf "$dir"
mkdir -p "$dir/source" "$dir/logs"
cp -r "$top_dir"/{Kbuild,kmod,uapi} "$dir/source/"
find "$dir/source" \( -name '*.o' -o -name '.*.cmd' \) -delete
subject=kbuild logs=$dir/logs
. "$top_dir/selftests/packages/lib.sh"

# kbuild TARGET [VARIABLE=VALUE...]
kbuild() {
	make -C "$headers" M="$dir/source" CC=gcc -j"$(nproc)" INSTALL_MOD_PATH="$root" \
		OFA_ROOT="$ofa" OFA_DKMS="$root/var/lib/dkms/mlnx-ofed-kernel" "$@"
}

# refused SENTENCE [VARIABLE=VALUE...]: the build must end with the sentence, at once
refused() {
	local sentence=$1
	shift
	! kbuild modules "$@" >"$dir/output" 2>&1 || return 1
	cat "$dir/output"
	grep -qF "rdma_post cannot be built for Linux $release: $sentence" "$dir/output" &&
		! grep -q 'CC \[M\]' "$dir/output"
}

# Put OFED's ib_core where its packages do.
install_ofed_modules() {
	mkdir -p "$modules/updates/dkms"
	: >"$modules/updates/dkms/ib_core.ko.xz"
}

# Make OFED's headers for this kernel.
make_ofed_tree() {
	mkdir -p "$1"/include/{rdma,uapi/rdma,linux}
	cp "$headers"/../linux-headers-*-common/include/rdma/*.h "$1/include/rdma/"
	cp "$headers"/../linux-headers-*-common/include/uapi/rdma/*.h "$1/include/uapi/rdma/"
	# A name and a function of a later kernel
	sed -i 's/^\(.*\)RDMA_DRIVER_ERDMA,/&\n\1RDMA_DRIVER_MANA,/' \
		"$1/include/uapi/rdma/ib_user_ioctl_verbs.h"
	sed -i 's/^\([ \t]*\)IB_ACCESS_HUGETLB = .*/&\n\1IB_ACCESS_FLUSH_GLOBAL = 1 << 8,\n\1IB_ACCESS_FLUSH_PERSISTENT = 1 << 9,/
		s/^enum ib_device_cap_flags {/&\n\tIB_DEVICE_FLUSH_GLOBAL = 1ULL << 38,\n\tIB_DEVICE_FLUSH_PERSISTENT = 1ULL << 39,\n\tIB_DEVICE_ATOMIC_WRITE = 1ULL << 40,/' \
		"$1/include/rdma/ib_verbs.h"
	echo '#define OFED_COMPAT_WAS_INCLUDED 1' >"$1/include/linux/compat-2.6.h"
	awk -F '\t' -v OFS='\t' '$3 ~ /infiniband/ {
		$1 = "0x0fed" substr($1, 7)
		$3 = "/usr/src/mlnx-ofed-kernel/" $3
		print
	}' \
		"$headers/Module.symvers" >"$1/Module.symvers"
}

refuses_without_headers() {
	install_ofed_modules
	refused "$modules/updates/dkms/ib_core.ko.xz is of OFED, whose headers"
}

# Its modules are those of another kernel, to which this one's directory has links.
refuses_weak_updates() {
	rm -r "$modules"
	mkdir -p "$modules/weak-updates/mlnx-ofa_kernel"
	ln -s /nonexistent/ib_core.ko "$modules/weak-updates/mlnx-ofa_kernel/"
	refused "$modules/weak-updates/mlnx-ofa_kernel/ib_core.ko is of OFED, whose headers"
}

# OFED is registered with DKMS, but not built for this kernel yet.
refuses_before_ofed_is_built() {
	rm -r "$modules"
	mkdir -p "$root/var/lib/dkms/mlnx-ofed-kernel"
	refused "$root/var/lib/dkms/mlnx-ofed-kernel is of OFED, whose headers"
	local status=$?
	install_ofed_modules
	return "$status"
}

# The headers of another kernel are not this kernel's.
refuses_other_kernel() {
	mkdir -p "$ofa/x86_64/5.10.0-1-amd64"
	ln -sfn x86_64/5.10.0-1-amd64 "$ofa/default"
	refused "$modules/updates/dkms/ib_core.ko.xz is of OFED, whose headers"
}

refuses_old_ofed() {
	make_ofed_tree "$tree"
	ln -sfn "x86_64/$release" "$ofa/default"
	sed -i '/RDMA_DRIVER_ERDMA/d' "$tree/include/uapi/rdma/ib_user_ioctl_verbs.h"
	refused "OFED in $tree is older"
	local status=$?
	make_ofed_tree "$tree"
	return "$status"
}

# Print the checksum of a symbol that the module was built for.
checksum_of() {
	modprobe --dump-modversions "$dir/source/rdma_post.ko" |
		awk -v symbol="$1" '$2 == symbol { print $1 }'
}

# The caller may have symbols of his own.
builds_for_ofed() {
	printf '0x12345678\tother\t/other\tEXPORT_SYMBOL\t\n' >"$dir/symvers"
	kbuild modules KBUILD_EXTRA_SYMBOLS="$dir/symvers" || return 1
	checksum_of rdma_create_qp
	checksum_of misc_register
	[[ $(checksum_of rdma_create_qp) = 0x0fed* ]] &&
		[[ $(checksum_of misc_register) != 0x0fed* ]] &&
		grep -q -- "-I$tree/include -I$tree/include/uapi .*RPOST_RDMA_VERSION=.*6,2,0" \
			"$dir/source/kmod/memory/.mr.o.cmd" &&
		grep -q "$tree/include/linux/compat-2.6.h" "$dir/source/kmod/memory/.mr.o.cmd" &&
		grep -q "$tree/include/rdma/ib_verbs.h" "$dir/source/kmod/memory/.mr.o.cmd"
}

# OFED brings what the kernel was built without.
builds_for_ofed_alone() {
	kbuild kmod/memory/mr.o CONFIG_INFINIBAND= CONFIG_INFINIBAND_ADDR_TRANS= \
		CONFIG_INFINIBAND_USER_MEM= &&
		grep -q -- -DCONFIG_INFINIBAND_USER_MEM=1 "$dir/source/kmod/memory/.mr.o.cmd"
}

# OFA_DIR=none takes the kernel's headers.
builds_for_kernel() {
	kbuild kmod/memory/mr.o OFA_DIR=none &&
		! grep -q "$tree" "$dir/source/kmod/memory/.mr.o.cmd"
}

echo "TAP version 13"
echo "1..13"
check refuses_old_kernel refused 'Linux 6.1 or later is needed' VERSION=5 PATCHLEVEL=19
check refuses_without_rdma refused 'it has no RDMA (CONFIG_INFINIBAND)' CONFIG_INFINIBAND=
check refuses_without_cm refused \
	'it has no RDMA connection manager (CONFIG_INFINIBAND_ADDR_TRANS)' \
	CONFIG_INFINIBAND_ADDR_TRANS=
check refuses_wrong_directory refused "OFA_DIR=$dir has no Module.symvers" OFA_DIR="$dir"
check refuses_without_headers refuses_without_headers
check refuses_weak_updates refuses_weak_updates
check refuses_before_ofed_is_built refuses_before_ofed_is_built
check refuses_other_kernel refuses_other_kernel
check refuses_old_ofed refuses_old_ofed
check builds_for_ofed builds_for_ofed
check builds_for_ofed_alone builds_for_ofed_alone
check builds_for_kernel builds_for_kernel
check cleans kbuild clean CONFIG_INFINIBAND=
exit "$failed"
