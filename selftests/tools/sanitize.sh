#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/sanitize.sh [-k KERNEL] [-t SECONDS] asan|tsan|valgrind [TEST...]
#
# Runs the library's API tests in a guest (6.1), with the tests and the library
# built with gcc's sanitizers, or under valgrind.  asan includes UBSan.
# TESTs are names from selftests/api/tests.mk, by default all.  Prints TAP; a
# program with a report fails, whatever its tests say.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir"

kernel=6.1 limit=''
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
read -ra tests < <(names_in selftests/api/tests.mk API_TESTS)
[ $# = 0 ] || tests=("$@")
tests=("${tests[@]/%/-rpost}")

# Set the command that runs each program, its files, and its environment.
under='' files=() memory=1G default_limit=2700
reports=/tmp/report
case $variant in
asan)
	flags='-O1 -fno-omit-frame-pointer -fsanitize=address,undefined'
	flags+=' -fno-sanitize-recover=undefined'
	environment=(
		"ASAN_OPTIONS=log_path=$reports:abort_on_error=1"
		"UBSAN_OPTIONS=log_path=$reports:abort_on_error=1:print_stacktrace=1"
	)
	environment[0]+=:detect_stack_use_after_return=1
	memory=2G
	;;
tsan)
	# TSan does not know fences; the library's are for memory that it shares
	# with the kernel.
	flags='-O1 -fno-omit-frame-pointer -fsanitize=thread -Wno-tsan'
	environment=("TSAN_OPTIONS=log_path=$reports:second_deadlock_stack=1")
	memory=2G
	;;
valgrind)
	default_limit=3600
	flags='-O1 -DRPOST_MEMCHECK'
	environment=(VALGRIND_LIB=/usr/libexec/valgrind RPOST_TEST_VALGRIND=yes)
	under="valgrind -q --error-exitcode=99 --log-file=$reports.%p"
	under+=" --leak-check=full --num-callers=20 --vgdb=no --sim-hints=lax-ioctls"
	under+=" --trace-children=yes --trace-children-skip=*/sh,*/ip,*/rdma"
	files=(-f /usr/bin/valgrind.bin:/usr/bin/valgrind)
	# valgrind needs the symbols of the loader.
	for name in /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6; do
		id=$(readelf -n "$name" | awk '/Build ID/ { print $3 }')
		name=/usr/lib/debug/.build-id/${id::2}/${id:2}.debug
		files+=(-f "$name:$name")
	done
	for name in memcheck-amd64-linux default.supp \
		vgpreload_core-amd64-linux.so vgpreload_memcheck-amd64-linux.so; do
		files+=(-f "/usr/libexec/valgrind/$name:/usr/libexec/valgrind/$name")
	done
	;;
*) usage >&2 && exit 2 ;;
esac

"$vm_dir/kmod.sh" "$kernel" >&2
out=$build_dir/$variant
make -s -j"$(nproc)" -C userlib BUILD="$out" CFLAGS="-g $flags" >&2
mkdir -p "$out/api" "$out/run"
# shellcheck disable=SC2086
gcc -g $flags -Wall -Wextra -c -o "$out/sanitize.o" selftests/api/sanitize.c
rm -f "${tests[@]/#/$out/api/}"
make -s -j"$(nproc)" -C selftests/api OUT="$out/api" LIBDIR="$out/lib" \
	CFLAGS="-g $flags" LDFLAGS="$out/sanitize.o" "${tests[@]/#/$out/api/}" >&2

programs=()
for name in "${tests[@]}"; do
	cat >"$out/run/$name" <<-END
		#!/bin/sh
		$under /opt/api/$name
		status=\$?
		for file in $reports.*; do
			[ -s "\$file" ] || continue
			sed 's/^/# /' "\$file"
			status=1
		done
		rm -f $reports.*
		exit \$status
	END
	chmod +x "$out/run/$name"
	programs+=("./run/$name")
	files+=(-f "$out/api/$name:/opt/api/$name")
done

exec "$vm_dir/run.sh" -k "$kernel" -t "${limit:-$default_limit}" -m "$memory" \
	-o "$build_dir/vm/check-$variant.$kernel" -f selftests/tools/run_tests.sh \
	-f "$out/lib:/opt/lib" -f "$out/run" "${files[@]}" -- \
	env LD_LIBRARY_PATH=/opt/lib RPOST_TEST_LINK=yes "${environment[@]}" \
	sh -c 'echo 0 >/proc/sys/kernel/randomize_va_space && exec "$@"' sh \
	./run_tests.sh "${programs[@]}"
