#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/lint.sh
#
# Static checks, as TAP: checkpatch --strict, sparse, kernel-doc, gcc and clang
# warnings, shellcheck.  Fails if one of them has anything to say.

# The checks are functions that check calls by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$top_dir" || exit 1

"$vm_dir/deps.sh" && "$vm_dir/fetch.sh" kselftest && "$vm_dir/fetch.sh" 6.1 ||
	exit 1
scripts=$cache_dir/scripts
out=$build_dir/lint
mkdir -p "$out"
failed=0 n=0

# check NAME COMMAND...: one test; passes if the command succeeds in silence
check() {
	local name=$1 ok=ok
	shift
	n=$((n + 1))
	if ! "$@" >"$out/$name.log" 2>&1 || [ -s "$out/$name.log" ]; then
		ok='not ok'
		failed=1
		sed 's/^/# /' "$out/$name.log" | head -n 40
	fi
	echo "$ok $n lint.$name"
}

# Locks are described in the kernel-doc above their struct, which checkpatch
# does not see.  Tracepoints have a layout of their own.  The interface's header
# is for programs too, and they have no BIT().
checkpatch() {
	local ignore=UNCOMMENTED_DEFINITION
	case $1 in
	*/trace.h) ignore+=,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT ;;
	kmod/compat/*) ignore+=,LINUX_VERSION_CODE,CONSTANT_COMPARISON ;;
	esac
	perl "$scripts/checkpatch.pl" --strict --no-tree --terse --no-summary \
		--no-signoff --max-line-length=100 --ignore "$ignore" -f "$1"
}

checkpatch_all() {
	local file
	for file in kmod/*.[ch] kmod/compat/*.h uapi/rdma/*.h; do
		checkpatch "$file"
	done
}

# Nothing but compat/ may know a version.
versions() {
	! grep -rn LINUX_VERSION_CODE kmod --include='*.[ch]' --exclude-dir=compat
}

sparse_all() {
	local kdir
	kdir=$(echo "$cache_dir"/kernels/6.1/root/usr/src/linux-headers-*-amd64)
	rm -rf "$out/kmod" && mkdir -p "$out/kmod" &&
		cp -r Kbuild kmod uapi "$out/kmod" &&
		make -s -C "$kdir" M="$out/kmod" C=2 W=1 modules 2>&1 |
		grep -E ': (warning|error):' | grep -v "$kdir/"
	true
}

warnings() {
	local file
	for file in userlib/*.c examples/*.c; do
		"$1" -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror \
			-Iuapi -fsyntax-only "$file"
	done
}

# symbols.rst is made from symbols.txt, and who changes that makes it anew.
symbols() {
	awk -v to=rst -f userlib/symbols.awk userlib/symbols.txt |
		diff -u Documentation/symbols.rst - ||
		echo "make -C Documentation symbols"
}

shell_all() {
	local file files=()
	while read -r file; do
		case $(head -n 1 "$file") in
		'#!/bin/sh' | '#!'*bash) files+=("$file") ;;
		esac
	done < <(git ls-files)
	shellcheck -x -P SCRIPTDIR "${files[@]}"
}

echo "TAP version 13"
echo "1..8"
check checkpatch checkpatch_all
check versions versions
check sparse sparse_all
check kernel-doc perl "$scripts/kernel-doc" -none -Werror kmod/*.[ch] \
	uapi/rdma/*.h userlib/*.c
check gcc warnings gcc
if have clang; then
	check clang warnings clang
else
	n=$((n + 1))
	echo "ok $n lint.clang # SKIP clang is not installed"
fi
check symbols symbols
check shellcheck shell_all
exit "$failed"
