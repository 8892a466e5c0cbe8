#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/check.sh [KERNEL...]
#
# Builds everything, boots guests and runs all tests in them.  The last line is
# "N passed, N failed, N skipped"; before it stand the names of what failed.  By
# default 6.1 in full, 6.12 and 7.2 with the tests of the kernel interface and the
# library; "debug" is the kernel with KASAN and lockdep, which is built first if
# it is not cached.  JOBS steps run at a time (by default 2).
#
# Exit status: 0 if nothing failed.  Logs are in build/check.

# The steps are functions that step and tap call by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir" || exit 1

logs=$build_dir/check
rm -rf "$logs"
mkdir -p "$logs"
started=$EPOCHREALTIME
jobs=${JOBS:-2}

note() { printf 'check: %s\n' "$*"; }

# What programs counted, added up over all steps.
sums() {
	local counts='faults survived|failure points swept'
	counts+='|injection points in callbacks'
	note "in all: $(grep -ohE "($counts): [0-9]+" "$logs"/*.log |
		awk -F ': ' -v counts="$counts" '
			{ sum[$1] += $2 }
			END {
				n = split(counts, name, "|")
				for (i = 1; i <= n; i++) {
					printf "%s%s: %d", sep, name[i], sum[name[i]]
					sep = ", "
				}
			}')"
}

# What a step found is in NAME.count: passed, failed, skipped.
finish() {
	local passed failed skipped
	wait
	read -r passed failed skipped < <(cat "$logs"/*.count |
		awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
	sums
	[ ! -s "$logs/failed" ] || sed 's/^/check: FAILED /' "$logs/failed"
	note "$(seconds_since "$started") s, logs in $logs"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}

# queue STEP...: run a step beside others.  One step's lines stand together.
queue() {
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	{
		local out
		out=$("$@")
		exec 9>"$logs/print"
		flock 9
		printf '%s\n' "$out"
	} &
}

# step NAME COMMAND...: a step without TAP counts as one test
step() {
	local name=$1 log=$logs/$1.log then=$EPOCHREALTIME
	shift
	note "$name ..."
	if "$@" >"$log" 2>&1; then
		echo 1 0 0 >"$logs/$name.count"
		note "  ok ($(seconds_since "$then") s)"
	else
		echo 0 1 0 >"$logs/$name.count"
		echo "$name" >>"$logs/failed"
		note "  FAILED, see $log"
		tail -n 25 "$log" | sed 's/^/  | /'
		return 1
	fi
}

# tap NAME COMMAND...: a step whose output is TAP, programs nested in it or not.
# An exit status that no test accounts for, like that of a guest whose kernel
# complained, is a failure.
tap() {
	local name=$1 log=$logs/$1.log then=$EPOCHREALTIME status p f s
	shift
	note "$name ..."
	"$@" >"$log" 2>&1
	status=$?
	read -r p f s < <(awk -f selftests/tools/tap.awk "$log")
	note "  $p passed, $f failed, $s skipped"
	if [ "$f" != 0 ]; then
		# And what the harness said of it: FILE:LINE:TEST:Expected ...
		local failures='^(# )*not ok|\.c:[0-9]+:.*:Expected |: Test '
		grep -E "$failures" "$log" | sed 's/^/  | /'
		{ grep -E "$failures" "$log" || echo "tests that were planned"; } |
			sed "s/^/$name: /" >>"$logs/failed"
	elif [ "$status" != 0 ]; then
		f=1
		echo "$name: exit status $status" >>"$logs/failed"
		note "  FAILED with exit status $status, see $log"
		tail -n 25 "$log" | sed 's/^/  | /'
	fi
	echo "$p $f $s" >"$logs/$name.count"
	grep -oE '(commands swept|failure points swept|injection points in callbacks): [0-9]+$|faults survived: [1-9].*' \
		"$log" | sed 's/^/  | /'
	grep -E '^(# )*ok .*# SKIP' "$log" | sed 's/^/  | /'
	# How many cases of each program pass, over each library.
	grep -E '^# [0-9a-z.-]+: .* \| .* \| |^# retried: ' "$log" | sed 's/^/  | /'
	note "  ($(seconds_since "$then") s)"
}

build() {
	make -s -j"$(nproc)" lib tests examples &&
		make -s -C examples LIB=system &&
		make -s -C selftests/bench OUT="$build_dir/bench" &&
		make -s -j"$(nproc)" -C selftests 32-bit
}

libc_only() {
	local needed
	needed=$(objdump -p "$build_dir/lib/librdma_post.so" |
		awk '$1 == "NEEDED" { print $2 }')
	echo "needs: $needed"
	[ "$needed" = libc.so.6 ]
}

install_tree() {
	local dest=$logs/install
	make -s install DESTDIR="$dest" PREFIX=/usr &&
		test -e "$dest/usr/lib/librdma_post.so.1" &&
		test -e "$dest/usr/lib/librdma_post.a" &&
		test -e "$dest/usr/lib/rdma_post/libibverbs.so.1" &&
		test -e "$dest/usr/lib/rdma_post/librdmacm.so.1" &&
		test -x "$dest/usr/bin/rdma-post-run" &&
		test -e "$dest/usr/share/man/man1/rdma-post-run.1" &&
		test -e "$dest/usr/include/rdma/rdma_post_abi.h" &&
		test -e "$dest/usr/lib/pkgconfig/rdma_post.pc" &&
		test -e "$dest/usr/lib/udev/rules.d/90-rdma-post.rules"
}

# How tests remove the device, and bring it back.
device=('RPOST_TEST_REMOVE=rdma link del rxe0'
	'RPOST_TEST_ADD=rdma link add rxe0 type rxe netdev dummy0')

# programs DIRECTORY TEST...: sets files, for run.sh, and names, for run_tests.sh
programs() {
	local directory=$1 test
	shift
	files=() names=()
	for test; do
		files+=(-f "$directory/$test")
		names+=("./$test")
	done
}

# kernel_tests KERNEL LIMIT [32]: the tests of the kernel interface, as 64-bit or
# as 32-bit programs
kernel_tests() {
	local bits=${3+-$3} files names tests driver=()
	local up='ip link set dummy0 up && ip addr add fd00::1/64 dev dummy0 nodad'
	# A dummy resolves everything else at once.
	local late='ip neigh replace 10.0.0.77 dev dummy0 nud failed && echo 10.0.0.77'
	# With lockdep, each queue pair of 7.2's rxe holds the module (see
	# rxe_reclassify_send_socket()), and ib_mad has one for each device. On
	# debug-6.1 it was not tried.
	[[ $1 == debug* ]] || driver=('RPOST_TEST_UNBIND=rmmod rdma_rxe'
		'RPOST_TEST_BIND=modprobe rdma_rxe && rdma link add rxe0 type rxe netdev dummy0')
	read -ra tests < <(sed -n "s/^RPOST_TESTS${3+_$3} := //p" selftests/tests.mk)
	programs "$build_dir/selftests$bits" "${tests[@]}"
	# shellcheck disable=SC2016
	"$vm_dir/run.sh" -k "$1" -t "$2" -o "$build_dir/vm/check-kernel$bits.$1" \
		-f selftests/tools/run_tests.sh "${files[@]}" -- \
		env "${device[@]}" \
		'RPOST_TEST_DOWN=ip link set dummy0 down' \
		"RPOST_TEST_UP=$up" "RPOST_TEST_LATE=$late" "${driver[@]}" \
		RPOST_TEST_MODULE=/vm/modules/rdma_post.ko \
		RPOST_TEST_DIR=/disk \
		sh -c 'vm-disk /disk && exec "$@"' sh ./run_tests.sh "${names[@]}"
}

# What registers memory, with the way that auto does not take on rxe; on the debug
# kernels with every failure point, too.
fast_registration() {
	local files names tests=(fastreg mr keys post exit)
	tests+=(attack_keys attack_memory attack_threads)
	[[ $1 != debug* ]] || tests+=(inject failnth)
	programs "$build_dir/selftests" "${tests[@]}"
	"$vm_dir/kmod.sh" -s selftests/qp_error "$1" &&
		"$vm_dir/run.sh" -k "$1" -t "$2" \
			-o "$build_dir/vm/check-fast.$1" -p registration=fast \
			-i "$build_dir/qp_error-$1/qp_error.ko" \
			-f selftests/tools/run_tests.sh "${files[@]}" -- \
			env "${device[@]}" \
			RPOST_TEST_DIR=/disk \
			sh -c 'vm-disk /disk && exec "$@"' sh ./run_tests.sh "${names[@]}"
}

# iWARP.
siw_tests() {
	local files names
	programs "$build_dir/selftests" device mr handover cq
	"$vm_dir/run.sh" -k "$1" -n siw -t "$2" -o "$build_dir/vm/check-siw.$1" \
		-f selftests/tools/run_tests.sh "${files[@]}" -- \
		./run_tests.sh "${names[@]}"
}

api_tests() {
	"$vm_dir/run.sh" -k "$1" -t "$2" -o "$build_dir/vm/check-api.$1" \
		-f "$build_dir/selftests/api" -f selftests/api/compare.sh -- \
		env RPOST_TEST_LINK=yes RPOST_TEST_DIR=/disk \
		sh -c 'vm-disk /disk && exec ./compare.sh ./api'
}

# Programs that post through send rings without knowing it.
api_ring_tests() {
	"$vm_dir/run.sh" -k "$1" -t "$2" -o "$build_dir/vm/check-api-ring.$1" \
		-f "$build_dir/selftests/api" -f selftests/api/compare.sh -- \
		env RDMA_POST_SUBMISSION_RING=1 \
		./compare.sh ./api posts lists comp threads wr_ex ud qp_end
}

# The 32-bit library, compared with the 64-bit libraries of the system.
api_tests_32() {
	local files=() program name
	for program in "$build_dir"/selftests-32/api/*-rpost; do
		name=${program##*/}
		name=${name%-rpost}
		files+=(-f "$program:/root/api/$name-rpost"
			-f "$build_dir/selftests/api/$name-sys:/root/api/$name-sys")
	done
	"$vm_dir/run.sh" -k "$1" -t "$2" -o "$build_dir/vm/check-api-32.$1" \
		-f "$build_dir/selftests-32/lib:/root/lib32" "${files[@]}" \
		-f selftests/api/compare.sh -- \
		env LD_LIBRARY_PATH=/root/lib32:/usr/lib32 ./compare.sh ./api
}

# suite_programs SUITE: SUITE.tar, with what its programs need, or SUITE.missing
suite_programs() {
	local root=$cache_dir/rdma/$1 dir=$build_dir/unmodified/$1 name
	rm -rf "$dir" "$dir".*
	mkdir -p "$dir"
	if ! "$vm_dir/fetch.sh" "rdma-$1"; then
		echo "cannot fetch $1's packages" >"$dir.missing"
		return
	fi
	for name in ld-linux-x86-64.so.2 libc.so.6 libm.so.6; do
		cp "$root"/usr/lib/x86_64-linux-gnu/"$name" "$dir/"
	done
	cp "$root"/usr/bin/{rping,ucmatose,ibv_devinfo,ibv_rc_pingpong} "$dir/"
	tar -C "${dir%/*}" -cf "$dir.tar" "$1"
}

unmodified_programs() {
	local suite suites=(trixie sid) files=()
	for suite in "${suites[@]}"; do
		suite_programs "$suite"
		files+=(-f "$(echo "$build_dir/unmodified/$suite".*)")
	done
	# shellcheck disable=SC2016
	echo 'int main(void) { return 0; }' |
		cc -x c - -o "$build_dir/unmodified/rpath" -Wl,--no-as-needed -lrdmacm \
			-Wl,--disable-new-dtags,-rpath,'$ORIGIN/elsewhere' || return 1
	make -s -C userlib/tests BUILD="$build_dir" \
		"$build_dir/userlib/tests/newer" &&
		"$vm_dir/run.sh" -k 6.1 -t 200 \
			-o "$build_dir/vm/check-unmodified.6.1" \
			-f "$build_dir/bin" -f "$build_dir/lib" \
			-f "$build_dir/userlib/tests/newer" \
			-f "$build_dir/unmodified/rpath" "${files[@]}" \
			-f selftests/tools/unmodified.sh -- sh -c \
			"./unmodified.sh bin/rdma-post-run ${suites[*]} &&
			LD_LIBRARY_PATH=lib ./newer"
}

# The same library, for programs that were built with newer headers, which
# symbols.sh does.
newer_headers() {
	if [ ! -e "$build_dir/selftests/api-sid/posts-rpost" ]; then
		echo "ok 1 newer_headers # SKIP not built, see $logs/symbols.log"
		echo "1..1"
		return
	fi
	"$vm_dir/run.sh" -k 6.1 -t 400 -o "$build_dir/vm/check-newer.6.1" \
		-f "$build_dir/selftests/api-sid" -f selftests/api/compare.sh -- \
		./compare.sh ./api-sid posts comp device
}

example_programs() {
	"$vm_dir/run.sh" -k "$1" -t "$2" -o "$build_dir/vm/check-examples.$1" \
		-f "$build_dir/examples:/opt/ours" \
		-f "$build_dir/examples-system:/opt/system" \
		-f selftests/tools/examples.sh -- \
		./examples.sh /opt/ours /opt/system 10.0.0.1
}

# Every failure point of every command, and failures made in callbacks.
failure_points() {
	"$vm_dir/debug-kernel.sh" debug && "$vm_dir/kmod.sh" debug &&
		"$vm_dir/run.sh" -k debug -t 5400 \
			-o "$build_dir/vm/check-failure-points.debug" \
			-f selftests/tools/run_tests.sh \
			-f "$build_dir/selftests/inject" \
			-f "$build_dir/selftests/failnth" -- \
			env "${device[@]}" \
			./run_tests.sh ./inject ./failnth
}

# fuzz KERNEL SECONDS: the corpus, and programs that nobody has written
fuzz() {
	local name=fuzz-$1
	step "$name" selftests/fuzz/fuzz.sh -k "$1" -t "$2" \
		-o "$build_dir/fuzz-check.$1"
	grep -E '^fuzz: (seed|corpus)|^all |^vm: .* executions,' "$logs/$name.log" |
		sed 's/^/  | /'
}

# The kernels that have a baseline.
bench_check() {
	local kernel stock=()
	for kernel; do
		[[ $kernel == debug* ]] || stock+=("$kernel")
	done
	selftests/bench/icount.sh "${stock[@]}"
}

# Does the benchmark work? What it measured is in the log, and not judged.
bench_smoke() {
	selftests/bench/bench.sh -k "$1" -s smoke -r 1
}

symbols_and_headers() {
	tap symbols selftests/tools/symbols.sh
	tap library-newer-headers newer_headers
}

case ${1-} in
'') kernels=(6.1 6.12 7.2) limit=2700 ;;
debug*) kernels=("$@") limit=5400 ;;
*) kernels=("$@") limit=2700 ;;
esac

note "packages and kernels"
"$vm_dir/deps.sh" || exit 1
"$vm_dir/fetch.sh" kselftest || exit 1
for kernel in "${kernels[@]}"; do
	case $kernel in
	debug*) "$vm_dir/debug-kernel.sh" "$kernel" || exit 1 ;;
	*) "$vm_dir/fetch.sh" "$kernel" || exit 1 ;;
	esac
done

step build build || finish
step library-needs-libc-only libc_only
step install install_tree
for kernel in "${kernels[@]}"; do
	step "module-$kernel" "$vm_dir/kmod.sh" "$kernel" || finish
done
# The debug kernel is made while stock ones are tested; who needs it waits.
[ "${kernels[0]}" != 6.1 ] ||
	nice "$vm_dir/debug-kernel.sh" debug >"$logs/debug-kernel.log" 2>&1 &
disown -a
for kernel in "${kernels[@]}"; do
	queue tap "kernel-interface-$kernel" kernel_tests "$kernel" "$limit"
	# Races between threads are in the kernel interface's tests.
	[ "$kernel" != debug-kcsan ] || continue
	queue tap "library-$kernel" api_tests "$kernel" "$limit"
	queue tap "library-rings-$kernel" api_ring_tests "$kernel" "$limit"
	queue tap "examples-$kernel" example_programs "$kernel" "$limit"
	queue tap "fast-registration-$kernel" fast_registration "$kernel" "$limit"
	[ "$kernel" != debug ] || queue tap siw siw_tests "$kernel" "$limit"
done
# What is short comes last, so that no slot is idle for long.
case ${kernels[0]} in
6.1)
	queue tap kernel-interface-32-bit kernel_tests 6.12 "$limit" 32
	queue tap library-32-bit api_tests_32 6.12 "$limit"
	queue tap library-asan selftests/tools/sanitize.sh asan
	queue step two-hosts-file-transfer examples/demo.sh
	queue tap two-hosts-faults-6.1 selftests/wire/wire.sh -k 6.1
	queue tap interop selftests/interop/interop.sh "${kernels[@]}"
	queue tap lint selftests/tools/lint.sh
	queue tap failure-points failure_points
	queue fuzz debug 60
	queue fuzz 6.1 15
	queue tap bench-check bench_check "${kernels[@]}"
	queue step bench-smoke-6.1 bench_smoke 6.1
	queue step bench-smoke-7.2 bench_smoke 7.2
	queue symbols_and_headers
	queue tap unmodified-programs unmodified_programs
	queue tap abi-compat selftests/tools/abi_compat.sh
	;;
esac
finish
