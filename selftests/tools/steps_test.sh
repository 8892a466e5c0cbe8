#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/steps_test.sh
#
# Tests on this host what steps.sh makes of steps that fail, with commands that print what
# guests would, and which lines of a kernel's log fail a run (vm/guest.sh). Prints TAP.

# The commands are called by name; steps.sh has an n and a name, too.
# shellcheck disable=SC2031,SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
subject=steps
# shellcheck source=../lib/tap.sh
. "$top_dir/selftests/lib/tap.sh"
evidence() { cat "$dir/said"; }

# tries NAME: count a call, and print which it is
tries() {
	echo >>"$dir/$1.tries"
	wc -l <"$dir/$1.tries"
}

# program NAME RESULT...: print the TAP of run_tests.sh for a program with one test whose
# first, second, ... results are these, the last one for all that follow
program() {
	local name=$1 try
	[ "${RPOST_ONLY:-$name}" = "$name" ] || return 0
	try=$(tries "$name")
	shift
	[ "$try" -le $# ] || try=$#
	echo "# selftests: rdma_post: $name"
	echo "# 1..1"
	echo "# #  RUN           $name.test ..."
	case ${!try} in
	ok) echo "# ok 1 $name.test" ;;
	skip) echo "# ok 1 # SKIP no second moon" ;;
	unmet) echo "# ok 1 # SKIP unmet: both at once" ;;
	teardown)
		echo "# # post/post.c:9:test:Expected 0 (0) == closed (1)"
		echo "# ok 1 # SKIP no second moon"
		;;
	bytes) echo "# # post/post.c:1:test:Expected 0 (0) == memcmp(a, b, 64) (1)" ;;&
	*)
		echo "# # post/post.c:7:test:Expected 7 (7) == try (${!try})"
		echo "# not ok 1 $name.test"
		;;
	esac
	case ${!try} in
	ok | skip | unmet | teardown) echo "ok 1 selftests: rdma_post: $name" ;;
	warns) echo "not ok 1 selftests: rdma_post: $name # exit=the kernel warned" ;;
	*) echo "not ok 1 selftests: rdma_post: $name # exit=1" ;;
	esac
	[[ ${!try} =~ ok|skip|unmet|teardown ]]
}

# guest STATUS LINE...: print what run.sh says, and end with its status
guest() {
	tries guest >/dev/null
	printf 'vm: %s\n' "${@:2}"
	return "$1"
}

# The emulator fails while the first boot runs its tests.
two_boots() {
	guest 0 'kernel 6.1, initramfs 40 MB'
	program fails no
	guest 0 'QEMU ran code that the kernel was patching: booting it once more' \
		'kernel 6.1, initramfs 40 MB'
	program passes ok
}

compares() {
	local try
	try=$(tries compares)
	if [ "${RPOST_ONLY-}" = api/lists ]; then
		echo "ok 1 lists.test"
		return
	fi
	echo "not ok 1 lists.test # librdmacm: ok  librdma_post: failed"
	echo "ok 2 posts.test"
	return 1
}

# planned TEST...: report tests by a plan of two
planned() {
	echo "1..2"
	printf 'ok %s\n' "$@"
}

# run_steps NAME WANTED STATUS COMMAND...: call a step, or a function with some, and look at
# the last line of the output, at the exit status, and for a line that matches $has
has=''
run_steps() {
	local name=$1 wanted=$2 want_status=$3 out status=0
	shift 3
	rm -f "$dir"/*.tries
	out=$(
		build_dir=$dir/build JOBS=2
		mkdir -p "$build_dir"
		. "$top_dir/selftests/tools/steps.sh"
		skip_list=$dir/skips
		"$@"
		finish
	) 2>&1 || status=$?
	printf '%s\n' "wanted: $wanted, status $want_status, a line $has" \
		"status $status, and:" "| ${out//$'\n'/$'\n'| }" >"$dir/said"
	[ "$(tail -n 1 <<<"$out")" = "$wanted" ] && [ "$status" = "$want_status" ] &&
		grep -qE -- "$has" <<<"$out"
	result "$name" $?
}

# ran NAME TIMES: the last command has called this so often
ran() {
	wc -l <"$dir/$1.tries" >"$dir/said"
	test_ "$1_ran_$2_times" [ "$(cat "$dir/said")" = "$2" ]
}

# complains NAME TIMES LINE...: a kernel's log with these lines has so many complaints
complains() {
	local name=$1 wanted=$2
	shift 2
	mkdir -p "$dir/guest"
	printf '[    1.000000] %s\n' "$@" >"$dir/guest/kernel.log"
	(
		out_dir=$dir/guest
		. "$top_dir/selftests/vm/guest.sh"
		own_log | grep -cE "$splat_pattern"
	) >"$dir/said"
	test_ "complains.$name" [ "$(cat "$dir/said")" = "$wanted" ]
}

# Who is killed ends the steps that run, and what they have started.
is_killed() {
	local pid child
	(
		build_dir=$dir/build JOBS=2
		. "$top_dir/selftests/tools/steps.sh"
		sleeps() { echo "$BASHPID" >"$dir/child" && sleep 60; }
		queue tap sleeps sleeps
		finish
	) >"$dir/said" 2>&1 &
	pid=$!
	while_runs "$pid" [ -s "$dir/child" ] && child=$(cat "$dir/child") && kill "$pid"
	wait "$pid"
	[ $? = 143 ] && until_true 10 eval "! kill -0 $child 2>/dev/null"
}

two_tides() {
	program tides skip
	program tides skip
}

four() {
	local name
	for name in a b c d; do
		queue tap "$name" program "$name" no ok
	done
}

two_of_one() {
	two() {
		program a no ok || true
		program b no ok
	}
	queue tap two two
}

late() {
	stop_after 5
	queue tap passes program passes ok
	queue tap sleeps sleep 60
	queue tap sleeps_too sleep 60
	queue tap never program never ok
}

printf '%s\t%s\t%s\t%s\n' 'tides-*' 1 'tides.*' 'no second moon' '*' 99 '*' 'unmet: *' \
	>"$dir/skips"
echo "TAP version 13"
run_steps passes "1 passed, 0 failed, 0 skipped" 0 tap moon program moon ok
has='FLAKY moon: moon: .*Expected 7'
run_steps fails_once "0 passed, 0 failed, 0 skipped, 1 flaky" 0 tap moon program moon no ok
ran moon 2
run_steps fails_twice "0 passed, 0 failed, 0 skipped, 1 flaky" 0 tap moon program moon no no ok
ran moon 3
has='FAILED moon: # # post/post.c:7:test:Expected 7'
run_steps fails "0 passed, 1 failed, 0 skipped" 1 tap moon program moon no
ran moon 3
has='FAILED moon: not ok 1 .*the kernel warned'
run_steps kernel_warns "0 passed, 1 failed, 0 skipped" 1 tap moon program moon warns ok
ran moon 1
has='memcmp'
run_steps wrong_bytes "0 passed, 1 failed, 0 skipped" 1 tap moon program moon bytes ok
ran moon 1
has=''
run_steps keys_open "0 passed, 1 failed, 0 skipped" 1 tap keys program keys no ok
ran keys 1
has='FAILED guest: .*the kernel complained'
run_steps kernel_complains "0 passed, 1 failed, 0 skipped" 1 \
	tap guest guest 99 'FAIL: the kernel complained'
ran guest 1
has='NOT RUN guest: vm: run: the guest did not start'
run_steps guest_does_not_start "0 passed, 0 failed, 0 skipped, 1 not run" 1 \
	tap guest guest 125 'run: the guest did not start its command in 3 boots'
ran guest 1
has='FAILED moon: not in selftests/skips: moon.moon.test # SKIP no second moon'
run_steps unexpected_skip "0 passed, 1 failed, 1 skipped" 1 tap moon program moon skip ok
ran moon 1
has=''
run_steps expected_skip "0 passed, 0 failed, 1 skipped" 0 tap tides-6.1 program tides skip
has='not in selftests/skips: tides.tides.test'
run_steps one_skip_more "0 passed, 1 failed, 2 skipped" 1 tap tides-6.1 two_tides
has='Expected 0'
run_steps skip_hides_nothing "0 passed, 1 failed, 0 skipped" 1 tap tides-6.1 program tides teardown
has='UNMET moon: .*both at once'
run_steps unmet "0 passed, 0 failed, 1 skipped, 1 unmet" 0 tap moon program moon unmet
has='FAILED moon: moon, run again'
run_steps unmet_is_no_pass "0 passed, 1 failed, 0 skipped" 1 tap moon program moon no unmet
has='4 programs failed; not more than 3'
run_steps too_many "0 passed, 4 failed, 0 skipped" 1 four
ran a 1
has='FLAKY two: b: '
run_steps two_programs "0 passed, 0 failed, 0 skipped, 2 flaky" 0 two_of_one
ran a 2
ran b 2
has='not the tests that were planned'
run_steps fewer_tests "1 passed, 1 failed, 0 skipped" 1 once tap plan planned '1 a'
run_steps more_tests "3 passed, 1 failed, 0 skipped" 1 once tap plan planned '1 a' '2 b' '3 c'
has='FLAKY api: api/lists: not ok 1 lists.test'
run_steps compares "1 passed, 0 failed, 0 skipped, 1 flaky" 0 tap api compares
has=''
run_steps boots_again "1 passed, 0 failed, 0 skipped" 0 tap two two_boots
run_steps builds "0 passed, 1 failed, 0 skipped" 1 once step build program build no ok
ran build 1
run_steps step_fails_once "0 passed, 0 failed, 0 skipped, 1 flaky" 0 step demo program demo no ok
has='NOT RUN never: no time was left'
run_steps no_time "1 passed, 0 failed, 0 skipped, 3 not run" 1 late

freed='BUG: KASAN: slab-use-after-free in'
end='=================================================================='
complains nothing 0 'rdma_post: loading out-of-tree module taints kernel.'
complains kasan 1 "$freed rpost_x+0x1" ' rpost_x+0x1 [rdma_post]' "$end"
complains kasan_elsewhere 1 "$freed rxe_rcv+0x1" ' rxe_rcv+0x1 [rdma_rxe]' \
	' ? rxe_sched_task+0x1 [rdma_rxe]' "$end"
complains task_of_a_freed_queue 0 "$freed rxe_sched_task+0x1" ' rxe_sched_task+0x1' \
	'Allocated by task 1:' ' rpost_x+0x1 [rdma_post]' "$end"
complains lock_of_a_freed_queue 0 "$freed _raw_spin_lock_irqsave+0x1" \
	' _raw_spin_lock_irqsave+0x1' ' rxe_sched_task+0x1 [rdma_rxe]' "$end"
complains lock_of_a_freed_queue_of_ours 1 "$freed _raw_spin_lock_irqsave+0x1" \
	' rxe_sched_task+0x1 [rdma_rxe]' ' rpost_x+0x1 [rdma_post]' "$end"
complains another_report_inside 2 "$freed rxe_sched_task+0x1" 'BUG: another' "$end"
complains freed_root 0 "$freed cm_find_remote_id+0x1" ' cm_find_remote_id+0x1 [ib_cm]' "$end"
complains task_that_is_drained 0 'WARNING: at rxe_sched_task+0x1' '---[ end trace ]---'
complains receive_of_a_mad 0 'WARNING: at rxe_post_recv+0x1' ' ib_mad_post_receive_mads+0x1' \
	'---[ end trace ]---'
complains receive_of_another 1 'WARNING: at rxe_post_recv+0x1' ' ib_post+0x1' '---[ end trace ]---'
complains no_end 1 "$freed rxe_sched_task+0x1" ' rxe_sched_task+0x1'
complains races_elsewhere 0 'BUG: KCSAN: data-race in a / b' ' a+0x1' "$end"
complains races_of_pages_on_demand 0 \
	'BUG: KCSAN: data-race in hmm_vma_walk_pmd / ib_umem_odp_unmap_dma_pages [ib_core]' \
	' rpost_x+0x1 [rdma_post]' "$end"
complains races 1 'BUG: KCSAN: data-race in a / rpost_b' ' rpost_b+0x1 [rdma_post]' "$end"
test_ is_killed is_killed
end_tap
