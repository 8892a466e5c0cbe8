#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: run_tests.sh PROGRAM ...
#
# Runs tests one after the other and prints TAP as the kernel's kselftests do:
# each program's TAP is indented by "# ". A program counts as skipped if all of
# its tests were. A program fails if it leaves objects in the module, which root
# can see, or if it makes the kernel warn. A program may announce warnings
# (rp_expect_log() in lib/rpost_test.h), and fails if they do not come. After
# the last program the kernel's slab memory may be at most a MB more than before
# the first. The exit status is 1 if a program failed or slab memory has grown,
# and 4 if all programs were skipped. With RPOST_ONLY, the name of a program, runs only
# that of its arguments, if it is there.

failed=0 skipped=0 n=0
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.status" "$log.expected"' EXIT

# Print the reason of the first skip.
reason() { sed -n 's/^.*# SKIP *//p' "$log" | head -n 1; }

# True if all tests of the program were skipped.
only_skips() {
	! grep '^ok ' "$log" | grep -qv '# SKIP' && grep -q '# SKIP' "$log"
}

# Print the objects that are left after some time for asynchronous cleanup;
# false if there are none.
objects=/sys/kernel/debug/rdma_post/objects
users=/sys/kernel/debug/rdma_post/users
left_behind() {
	local left tries=0
	[ -r "$objects" ] || return 1
	while left=$(awk '$2 != 0 { printf " %s %d", $1, $2 }' "$objects"
		awk '{ printf " of user %s", $0 }' "$users")
		[ -n "$left" ] && [ "$tries" -lt 30 ]; do
		tries=$((tries + 1))
		sleep 1
	done
	[ -n "$left" ] && echo "# left behind:$left"
}

# Print the slab memory of objects in use in KiB, or nothing if it cannot be
# read. Kernels with debugging aids keep freed objects, and have kmemleak
# instead.
slab_kib() {
	[ -r /proc/slabinfo ] && [ -d /sys/kernel/slab ] && [ ! -e /proc/lockdep ] ||
		return 0
	for shrink in /sys/kernel/slab/kmalloc-*/shrink \
		/sys/kernel/slab/memdup_user-*/shrink; do
		[ ! -e "$shrink" ] || echo 1 >"$shrink"
	done
	awk '/^(kmalloc-(cg-|rnd-[0-9]+-)?|memdup_user-)[0-9]/ { sum += $2 * $4 }
		END { printf "%d\n", sum / 1024 }' /proc/slabinfo
}

# True if slab memory stays larger than before. The slack covers the fluctuation
# of the kernel's other users.
slab_slack_kib=1024
more_slab() {
	local before=$1 now tries=0
	[ -n "$before" ] || return 1
	while now=$(slab_kib)
		[ "$now" -gt $((before + slab_slack_kib)) ] && [ "$tries" -lt 30 ]; do
		tries=$((tries + 1))
		sleep 1
	done
	echo "# slab memory: $before KiB before the first program, $now KiB after the last"
	[ "$now" -gt $((before + slab_slack_kib)) ] &&
		echo "# more slab memory than the programs may leave"
}

# Messages at level warning or above that are no faults. This one: a test
# queried the port of a device without a speed.
harmless='^[a-z0-9]+ speed is unknown, defaulting to '
# rxe reports each request that it refuses or fails.
harmless="$harmless|^(rdma_rxe|(infiniband )?(rxe[0-9]+|rpost[a-z0-9]*)): "
harmless="$harmless|^[a-z_]+: [0-9]+ callbacks suppressed$"
# attack_mmap tries a deprecated system call.
harmless="$harmless|^mmap: .* uses deprecated remap_file_pages\(\) syscall"
# admit sets wrong parameters, as an administrator might.
harmless="$harmless|^rdma_post: devices="
# A listener is destroyed while a request of its is handled: with 7.2 ib_cm waits for that in
# a loop without a timeout, and says so in each round.
harmless="$harmless|^cm_destroy_id_wait_timeout: cm_id=[^ ]* timed out\. state 1 -> 0, refcnt="
# Something took long in a busy emulator.
harmless="$harmless|^(clocksource|hrtimer|perf|sched|workqueue): "

# Print the warnings that the program has announced, one pattern a line.
expected() { sed -n 's/^# the kernel will say: //p' "$log" | sort -u; }

# Write a line to the kernel's log to mark the position. The logs of kernels
# with debugging aids are longer, and vm/guest.sh checks them as a whole.
mark_log() {
	mark=''
	[ ! -e /proc/lockdep ] || return 0
	[ "$(cat /proc/sys/kernel/printk_devkmsg 2>/dev/null)" != off ] || return 0
	echo "<6>run_tests.sh $$ $n." 2>/dev/null >/dev/kmsg || return 0
	mark="run_tests.sh $$ $n."
}

# Print the warnings since the mark without the time; false if there are none.
# vm/guest.sh checks splats, since it knows which are not the module's. OOM
# kills of a memory cgroup are no faults: the tests count them.
warned() {
	local lines pattern unsaid=''
	[ -n "$mark" ] || return 1
	lines=$(dmesg -r 2>/dev/null | awk -v mark="$mark" '
		index($0, mark) { seen = 1; next }
		!seen { next }
		/\[ cut here \]/ { splat = 1 }
		/ invoked oom-killer: / { oom = 1 }
		/Memory cgroup out of memory: Killed/ { oom = 0; held = ""; next }
		!splat && match($0, /^<[0-9]+>/) && substr($0, 2) % 8 <= 4 {
			sub(/^<[0-9]+>\[ *[0-9.]+\] */, "")
			if (oom)
				held = held $0 "\n"
			else
				print
		}
		/\[ end trace / { splat = 0 }
		END {
			if (!seen)
				print "the log has no room for what this program made the kernel say"
			printf "%s", held
		}' | grep -Ev "$harmless")
	expected >"$log.expected"
	while read -r pattern; do
		printf '%s\n' "$lines" | grep -qEx "$pattern" ||
			unsaid="$unsaid${unsaid:+
}the kernel has not said: $pattern"
	done <"$log.expected"
	[ ! -s "$log.expected" ] ||
		lines=$(printf '%s\n' "$lines" | grep -Evxf "$log.expected")
	lines=$lines${unsaid:+${lines:+
}$unsaid}
	[ -n "$lines" ] || return 1
	printf '%s\n' "$lines" | head -n 40 | sed 's/^/# # kernel: /'
}

if [ -n "${RPOST_ONLY-}" ]; then
	only=
	for program; do
		[ "$(basename "$program")" != "$RPOST_ONLY" ] || only=$program
	done
	set -- ${only:+"$only"}
	[ $# -gt 0 ] || exit 0
fi

slab=$(slab_kib 2>/dev/null)
echo "TAP version 13"
echo "1..$#"
for program; do
	n=$((n + 1))
	name="selftests: rdma_post: $(basename "$program")"
	echo "# $name"
	mark_log
	read -r began _ </proc/uptime
	{
		"$program" </dev/null 2>&1
		echo $? >"$log.status"
	} | tee "$log" | sed 's/^/# /'
	read -r status <"$log.status"
	read -r now _ </proc/uptime
	echo "# $(echo "$began $now" | awk '{ printf "%.1f", $2 - $1 }') s"
	left_behind && status='left behind'
	warned && status='the kernel warned'
	if [ "$status" = 4 ] || { [ "$status" = 0 ] && only_skips; }; then
		skipped=$((skipped + 1))
		echo "ok $n $name # SKIP $(reason)"
	elif [ "$status" = 0 ]; then
		echo "ok $n $name"
	else
		failed=$((failed + 1))
		echo "not ok $n $name # exit=$status"
	fi
done
echo "# programs: $((n - failed - skipped)) passed, $failed failed, $skipped skipped"
more_slab "$slab" && exit 1
[ "$failed" = 0 ] || exit 1
[ "$skipped" != "$n" ] || exit 4
