#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/interop/fetch.sh [bookworm|trixie|sid]
#
# Downloads the programs that the suite runs, packages of a Debian release (by
# default 12, bookworm) with their dependencies, and makes a file system image of
# them. The packages that the host has installed do not matter. Prints the path of
# the image, which is in ${RDMA_POST_CACHE:-~/.cache/rdma_post}/programs. Needs no
# root.

set -euo pipefail
# shellcheck source=../vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"
# shellcheck source=../vm/apt.sh
. "$vm_dir/apt.sh"

suite=${1:-bookworm}
packages=(
	bash dash coreutils diffutils grep sed mawk procps iproute2 socat strace libgcc-s1
	ibverbs-providers ibverbs-utils rdmacm-utils perftest
	libfabric-bin python3-minimal python3-pyverbs
	fio qperf tgt libiscsi-bin openmpi-bin libblas3 hpcc qemu-system-x86 qemu-utils
)
# Packages of which only some files are taken, without their dependencies; and the
# patterns of these files.
parts=(util-linux '*/bin/taskset' qemu-block-extra '*/qemu/block-iscsi.so')
# UCX, what uses it, and librpma. UCX of sid is built without verbs.
older=(ucx-utils mpich netpipe-mpich2 libscalapack-mpich2.2 librpma0)
older_parts=(scalapack-mpi-test './usr/lib/*/scalapack/mpich-tests/xdlu')
# The name has the version, too.
adios2='libadios2-serial-c-[0-9]'
case $suite in
-h | --help) usage && exit ;;
bookworm)
	packages+=("${older[@]}" dapl2-utils)
	parts+=("${older_parts[@]}")
	;;
trixie)
	# Ceph's programs need these; those of Debian 12 lack the messenger's.
	packages+=("${older[@]}" "$adios2" librados2 libgoogle-perftools4t64 libradosstriper1
		liblz4-1 libsnappy1v5 libxxhash0
		python3-rados python3-ceph-argparse python3-prettytable)
	parts+=("${older_parts[@]}" ceph-test './usr/bin/ceph_perf_msgr_*'
		ceph-common './usr/bin/ceph ./usr/bin/rados'
		ceph-mon ./usr/bin/ceph-mon ceph-osd ./usr/bin/ceph-osd)
	;;
sid) packages+=(dapl2-utils "$adios2" python3-torch) ;;
*) usage >&2 && exit 2 ;;
esac
# Dependencies of scripts and daemons that the suite does not start, and of UCX's
# modules for GPUs, which make its programs start slowly.
unwanted='^(perl|libperl|adduser|passwd|systemd|init-system-helpers|debconf|openssh)'
unwanted+='|^(sg3-utils|libconfig-general-perl|fontconfig|x11-common|xkb-data)'
unwanted+='|^(libamdhip64|libamd-comgr|libhsa|libllvm|libclang-common|libze1)'
# PyTorch does without these.
unwanted+='|^(libtorch-test|python3-(networkx|numpy|sympy|hypothesis|fsspec|setuptools))'

closure() {
	apt_run "$suite" apt-get -s --no-install-recommends install \
		"${packages[@]}" | awk '$1 == "Inst" { print $2 }' |
		grep -vE "$unwanted"
}

# Do the work of the packages' installation scripts.
finish_root() {
	local root=$1 doc=$1/usr/share/doc/rdma-core lib libs=$1/usr/lib/x86_64-linux-gnu
	mkdir -p "$root/opt/pyverbs"
	mv "$doc/tests" "$root/opt/pyverbs/"
	gunzip "$root"/opt/pyverbs/tests/*.gz
	rm -rf "$root"/usr/share/{doc,man,locale,info,icons,fonts,lintian}
	mkdir -p "$root"/{dev,proc,sys,tmp,run,root,suite}
	mkdir -p "$root/var"
	rm -rf "$root/var/run"
	ln -s /run "$root/var/run"
	[ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
	ln -s mawk "$root/usr/bin/awk"
	for lib in blas lapack; do
		[ ! -e "$libs/$lib/lib$lib.so.3" ] ||
			ln -s "$lib/lib$lib.so.3" "$libs/lib$lib.so.3"
	done
	if [ "$suite" = bookworm ]; then
		ln -s ../libpsm1/libpsm_infinipath.so.1.16 \
			"$libs/libpsm_infinipath.so.1"
	fi
	printf '%s\n' root:x:0:0:root:/root:/bin/sh \
		nobody:x:65534:65534:nobody:/tmp:/bin/sh >"$root/etc/passwd"
	printf '%s\n' root:x:0: nogroup:x:65534: >"$root/etc/group"
	printf '%s\n' '127.0.0.1 localhost' '10.0.0.1 guest' >"$root/etc/hosts"
	printf '%s\n' 'hosts: files' 'passwd: files' >"$root/etc/nsswitch.conf"
	/sbin/ldconfig -r "$root" 2>/dev/null || true
}

make_image() {
	local dir=$1 deb mb i patterns
	need apt-get dpkg-deb mke2fs
	apt_update "$suite"
	# shellcheck disable=SC2046
	apt_download "$suite" "$dir/debs" $(closure)
	say "unpacking the programs"
	# Since Debian 13 packages have files in /usr only.
	mkdir -p "$dir/root"/usr/{bin,sbin,lib,lib64}
	[ "$suite" = bookworm ] || ln -s usr/{bin,sbin,lib,lib64} "$dir/root/"
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir/root"
		dpkg-deb -W "$deb"
	done >"$dir/versions"
	for ((i = 0; i < ${#parts[@]}; i += 2)); do
		apt_download "$suite" "$dir/parts" "${parts[i]}"
		read -ra patterns <<<"${parts[i + 1]}"
		dpkg-deb --fsys-tarfile "$dir"/parts/*.deb |
			tar -x -C "$dir/root" --wildcards "${patterns[@]}"
		dpkg-deb -W "$dir"/parts/*.deb >>"$dir/versions"
		rm -r "$dir/parts"
	done
	finish_root "$dir/root"
	mb=$(du -sm "$dir/root" | cut -f1)
	mke2fs -q -t ext4 -O ^has_journal -E root_owner=0:0 -d "$dir/root" \
		"$dir/image" "$((mb + mb / 5 + 16))M"
	rm -rf "$dir/debs" "$dir/root"
}

final=$cache_dir/programs/$suite-$(sha256sum <"$0" | cut -c1-12)
make_once "image of $suite's programs" programs "$final" fill "$final" make_image
echo "$final/image"
