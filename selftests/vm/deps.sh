#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/deps.sh [--check]
#
# The Debian packages that building, checking and the guests need. As root,
# installs what is missing; otherwise, and with --check, prints the command that
# does and exits 1. Says nothing and exits 0 if nothing is missing.

set -euo pipefail

packages=(
	# module and library
	gcc g++ libc6-dev make pkg-config libibverbs-dev librdmacm-dev
	# 32-bit programs
	gcc-multilib libc6-dev-i386
	# checks: sparse, coccinelle for the module; checkpatch, kernel-doc are perl
	sparse perl shellcheck clang coccinelle valgrind
	# interop/: a program that uses librpma; a file system of Debian's programs
	librpma-dev e2fsprogs
	# kernels: fetch.sh, kmod.sh; the rest is for debug-kernel.sh
	binutils kmod xz-utils zstd lz4 libelf-dev
	flex bison bc m4 libssl-dev
	# guests
	qemu-system-x86 cpio util-linux dash iproute2
	rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest
	# bench/: column is in bsdextrautils, socat talks to QEMU
	jq bsdextrautils socat
)

# busybox-static would do as well.
command -v busybox >/dev/null || packages+=(busybox)
# bench/: any gnuplot draws.
command -v gnuplot >/dev/null || packages+=(gnuplot-nox)

missing=()
installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' \
	"${packages[@]}" 2>/dev/null || true)"
for package in "${packages[@]}"; do
	case $installed in
	*" installed:$package "*) continue ;;
	esac
	missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "${1-}" = --check ] || [ "$(id -u)" != 0 ]; then
	echo "Missing packages; install them as root:" >&2
	echo "apt-get install --no-install-recommends ${missing[*]}"
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install() {
	apt-get -qq -y --no-install-recommends install "${missing[@]}"
}
echo "installing ${missing[*]}" >&2
# Package lists may be missing or old.
install || { apt-get -qq update && install; }
