#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/sanitize.sh [-k KERNEL] [-t SECONDS] asan|tsan|valgrind [TEST...]
#
# The library's API tests over the library, both built with gcc's sanitizers, or
# under valgrind, in a guest (6.1).  asan has UBSan, too.
# TESTs are names from selftests/api/tests.mk, by default all.  The output is TAP;
# a report is printed at the end and fails the run, whatever the tests say.

set -euo pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$top_dir"

kernel=6.1 limit=900
while getopts hk:t: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	t) limit=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2 && exit 2; }
variant=$1
shift
read -ra tests <<<"$(sed -n 's/^API_TESTS [:+]= //p' selftests/api/tests.mk |
	tr '\n' ' ')"
[ $# = 0 ] || tests=("$@")
tests=("${tests[@]/%/-rpost}")

# What the programs run under, and with what in their environment.
under='' files=() memory=1G
reports=/tmp/report
case $variant in
asan)
	flags='-O1 -fno-omit-frame-pointer -fsanitize=address,undefined'
	flags+=' -fno-sanitize-recover=undefined'
	environment=(
		"ASAN_OPTIONS=log_path=$reports:abort_on_error=1"
		"UBSAN_OPTIONS=log_path=$reports:abort_on_error=1:print_stacktrace=1"
	)
	memory=2G
	;;
tsan)
	# It does not know fences; the library's are for memory shared with the kernel.
	flags='-O1 -fno-omit-frame-pointer -fsanitize=thread -Wno-tsan'
	environment=("TSAN_OPTIONS=log_path=$reports:second_deadlock_stack=1")
	memory=2G
	;;
valgrind)
	flags='-O1'
	environment=(VALGRIND_LIB=/usr/libexec/valgrind)
	under="valgrind -q --error-exitcode=99 --log-file=$reports.%p"
	under+=" --trace-children=yes --trace-children-skip=*/sh,*/ip,*/rdma"
	files=(-f /usr/bin/valgrind:/usr/bin/valgrind)
	for name in memcheck-amd64-linux default.supp \
		vgpreload_core-amd64-linux.so vgpreload_memcheck-amd64-linux.so; do
		files+=(-f "/usr/libexec/valgrind/$name:/usr/libexec/valgrind/$name")
	done
	;;
*) usage >&2 && exit 2 ;;
esac

out=$build_dir/$variant
make -s -j"$(nproc)" -C userlib BUILD="$out" CFLAGS="-g $flags" >&2
make -s -j"$(nproc)" -C selftests/api OUT="$out/api" LIBDIR="$out/lib" \
	CFLAGS="-g $flags" "${tests[@]/#/$out/api/}" >&2

programs=()
mkdir -p "$out/run"
for name in "${tests[@]}"; do
	printf '#!/bin/sh\nexec %s\n' "$under /opt/api/$name" >"$out/run/$name"
	chmod +x "$out/run/$name"
	programs+=("./run/$name")
	files+=(-f "$out/api/$name:/opt/api/$name")
done

# shellcheck disable=SC2016
guest='
reports=$1
shift
echo 0 >/proc/sys/kernel/randomize_va_space
status=0
./run_tests.sh "$@" || status=$?
for file in "$reports".*; do
	[ ! -s "$file" ] || { sed "s/^/# /" "$file"; status=1; }
done
exit $status'

exec "$vm_dir/run.sh" -k "$kernel" -t "$limit" -m "$memory" \
	-o "$build_dir/vm/check-$variant.$kernel" -f selftests/run_tests.sh \
	-f "$out/lib:/opt/lib" -f "$out/run" "${files[@]}" -- \
	env LD_LIBRARY_PATH=/opt/lib RPOST_TEST_LINK=yes "${environment[@]}" \
	sh -c "$guest" sh "$reports" "${programs[@]}"
