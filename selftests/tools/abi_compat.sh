#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/abi_compat.sh [KERNEL]
#
# Runs, in guests, the library and its API tests over the module of the ABI's
# first release, and that release's library and API tests over the module.
# Prints TAP. Builds the first release from git's history, into build/abi-1;
# without the history, and as long as there is no release, skips everything. The
# library, the tests and the module must have been built.

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir" || exit 1

# The commit of the first release, once there is one.
first=''
kernel=${1:-6.1}
old=$build_dir/abi-1
# Programs of that release, and the present programs with the same tests.
old_tests=(posts cm states sync)
new_tests=("${old_tests[@]}" posts_flags cm_end cm_channel getaddrinfo)

bail() {
	echo "Bail out! $*"
	exit 1
}

# skip REASON: end, as nothing has been released, or there is no history
skip() {
	echo "TAP version 13"
	echo "1..1"
	echo "ok 1 abi_compat # SKIP $*"
	exit 0
}

# Unpack the sources of the first release, once.
unpack() {
	[ ! -e "$old/.$first" ] || return 0
	rm -rf "$old"
	mkdir -p "$old/tree"
	git archive "$first" | tar -x -C "$old/tree" && touch "$old/.$first"
}

build_old() {
	RDMA_POST_BUILD=$old "$old/tree/selftests/vm/kmod.sh" "$kernel" &&
		make -s -C "$old/tree/userlib" BUILD="$old" &&
		make -s -C "$old/tree/selftests/api" rpost OUT="$old/api" \
			LIBDIR="$old/lib"
}

# guest NAME OPTIONS... -- COMMAND...: print the command's TAP without plans,
# and one more test if the guest failed although its tests passed
guest() {
	local name=$1 log=$build_dir/vm/abi-$1.$kernel.tap status
	shift
	mkdir -p "$build_dir/vm"
	"$vm_dir/run.sh" -k "$kernel" -t 300 \
		-o "$build_dir/vm/abi-$name.$kernel" "$@" >"$log"
	status=$?
	sed -E "/^(TAP version|1\.\.)/d; s/^((not )?ok [0-9]+) /\1 $name./" "$log"
	if [ "$status" != 0 ] && ! grep -q '^not ok' "$log"; then
		echo "not ok 0 $name.guest # exit status $status"
	fi
}

# choose DIRECTORY TEST...: set programs, and options of run.sh for them
choose() {
	local program
	options=(-f selftests/tools/run_tests.sh)
	programs=("${@:2}")
	programs=("${programs[@]/%/-rpost}")
	for program in "${programs[@]}"; do
		options+=(-f "$1/$program")
	done
	programs=("${programs[@]/#/./}")
}

new_library_old_module() {
	choose "$build_dir/selftests/api" "${new_tests[@]}"
	guest old_module -M -i "$old/kmod-$kernel/rdma_post.ko" \
		"${options[@]}" -- ./run_tests.sh "${programs[@]}"
}

old_library_new_module() {
	choose "$old/api" "${old_tests[@]}"
	# Use one CPU: the old programs do not expect that ib_cm's threads, one
	# on each CPU, handle a DREQ before the RTU that came first.
	# Check first that the old tests load the old library.
	# shellcheck disable=SC2016
	guest old_library -s 1 "${options[@]}" -f "$old/lib:/root/lib" \
		-- env LD_LIBRARY_PATH=/root/lib sh -c '
			LD_TRACE_LOADED_OBJECTS=1 "$1" | grep -q " /root/lib/" &&
				exec ./run_tests.sh "$@"' sh "${programs[@]}"
}

[ -n "$first" ] || skip "nothing has been released"
git cat-file -e "$first^{commit}" 2>/dev/null ||
	skip "the history does not reach back to ${first:0:7}"
{ unpack && build_old; } >&2 || bail "the first release does not build"

echo "TAP version 13"
{
	new_library_old_module
	old_library_new_module
} | awk '
	/^ok / { $2 = ++n }
	/^not ok / { $3 = ++n; failed = 1 }
	{ print }
	END { print "1.." n + 0; exit failed || !n }'
