#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/deps.sh [--check] [PART]...
#
# Installs the Debian packages that parts of the project need: build (module, library,
# tests, examples), headers (of a kernel), boot (a guest), guests (boot, checks and
# benchmarks), docs, plots, gdb, deb and rpm (packages), lint (of packages), userland (guests
# with a release's userland), containers (their tests), watch; by default build and guests. If
# the user is not root, or with --check, prints the command that installs the missing packages
# and exits 1. Says nothing and exits 0 if no package is missing, or if the system does not
# have Debian's packages.

# The arguments name the lists.
# shellcheck disable=SC2034

set -euo pipefail

build=(gcc libc6-dev make libibverbs-dev librdmacm-dev libssl-dev)
# fetch.sh takes the headers of the tests out of the kernel's source.
build+=(xz-utils)

headers=(linux-headers-amd64)

# Any gnuplot draws.
plots=()
command -v gnuplot >/dev/null || plots+=(gnuplot-nox)

boot=(
	# kernels: fetch.sh, kmod.sh
	binutils kmod xz-utils zstd
	# guests
	qemu-system-x86 cpio util-linux dash iproute2
	ibverbs-providers ibverbs-utils rdmacm-utils
)
# busybox-static would do as well.
command -v busybox >/dev/null || boot+=(busybox)

guests=(
	"${boot[@]}"
	# 32-bit programs, C++, pkg-config
	gcc-multilib libc6-dev-i386 g++ pkg-config
	# examples: one in Python, a project for CMake
	python3 cmake
	# checks: sparse, coccinelle for the module; checkpatch, kernel-doc are perl
	sparse perl shellcheck clang coccinelle valgrind mandoc
	# interop/: programs that use libraries; a file system of Debian's programs; sources
	librpma-dev libfabric-dev libucx-dev e2fsprogs dpkg-dev
	# tools/unmodified.sh; tools/check.sh: man
	libcap2-bin man-db
	# debug-kernel.sh
	lz4 libelf-dev flex bison bc m4 libssl-dev
	# guests with more programs
	rdma-core perftest
	# doctor/: completion; a terminal; bench/: socat talks to QEMU
	zsh fish tmux jq socat
)
# Builds do without it, but take longer.
[ "$(id -u)" != 0 ] || guests+=(ccache)
guests+=("${plots[@]}")

# kernel-doc is a perl script of the kernel; fetch.sh fetches it like the tests' headers.
docs=(python3-sphinx make perl xz-utils)

gdb=(gdb binutils)

deb=(dpkg-dev build-essential debhelper dh-dkms libibverbs-dev librdmacm-dev python3-sphinx)

rpm=(rpm cpio python3-sphinx)

lint=(lintian reuse)

userland=(mmdebstrap e2fsprogs)
[ "$(id -u)" = 0 ] || userland+=(uidmap)

containers=(python3-jsonschema python3-yaml)

watch=(entr git)

check=''
[ "${1-}" != --check ] || { check=1 && shift; }
[ $# -gt 0 ] || set -- build guests
packages=()
for part; do
	case $part in
	build | headers | boot | guests | docs | plots | gdb | deb | rpm | lint | userland | \
		containers | watch)
		declare -n list=$part ;;
	*) sed -n '/^# Usage/,/^$/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
	esac
	packages+=("${list[@]}")
done
command -v dpkg-query >/dev/null || exit 0

missing=()
installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' \
	"${packages[@]}" 2>/dev/null || true)"
for package in "${packages[@]}"; do
	case $installed in
	*" installed:$package "*) continue ;;
	esac
	missing+=("$package")
	# Another list may have it, too.
	installed+="installed:$package "
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ -n "$check" ] || [ "$(id -u)" != 0 ]; then
	echo "Missing packages; install them as root:" >&2
	echo "apt-get install --no-install-recommends ${missing[*]}"
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -qq -o Acquire::Retries=5 "$@"; }
install() {
	apt -y -o DPkg::Lock::Timeout=300 --no-install-recommends install \
		"${missing[@]}"
}
# Two targets of one make may come here at a time.
exec 9>/var/lock/rdma_post-packages
flock 9
echo "installing ${missing[*]}" >&2
# Package lists may be missing or old.
install || { apt update && install; }
