#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: run_tests.sh PROGRAM ...
#
# Runs tests one after the other and prints TAP as the kernel's kselftests do:
# each program's own TAP indented by "# ". A program in which every test was
# skipped counts as skipped. A program that leaves something behind in the
# module, as root can see there, fails, and so does one that makes the kernel
# warn. After the last one the kernel's slab memory must be back to within a MB of
# what it was before the first. Exit status 1 if a program failed, or there is more
# slab memory, 4 if all were skipped.

failed=0 skipped=0 n=0
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.status"' EXIT

# The reason of the first skip.
reason() { sed -n 's/^.*# SKIP *//p' "$log" | head -n 1; }

# Nothing but skips?
only_skips() {
	! grep '^ok ' "$log" | grep -qv '# SKIP' && grep -q '# SKIP' "$log"
}

# What is left, once what runs behind the program's back has come to its end.
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

# Slab memory in KiB, of objects in use only; nothing where root cannot see it. A
# kernel with debugging aids keeps what has been freed, and has kmemleak.
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

# More than before, after a while? The slack is what others in the kernel have
# more at one time than at another.
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
	[ "$now" -gt $((before + slab_slack_kib)) ]
}

# What the kernel says at level warning or above that is no fault. A port of a
# device without a speed was queried.
harmless='^[a-z0-9]+ speed is unknown, defaulting to '
# rxe tells of each request that it refuses or fails.
harmless="$harmless|^(rdma_rxe|(infiniband )?(rxe[0-9]+|rpost[a-z0-9]*)): "
harmless="$harmless|^[a-z_]+: [0-9]+ callbacks suppressed$"
# What attack_mmap tries is old.
harmless="$harmless|^mmap: .* uses deprecated remap_file_pages\(\) syscall"
# An administrator's mistakes, which admit makes.
harmless="$harmless|^rdma_post: devices="
# A busy emulator: something took long.
harmless="$harmless|^(clocksource|hrtimer|perf|sched|workqueue): "

# Where the kernel's log stands, as a line in it. A kernel with debugging aids
# says much more, and is judged by its whole log (see vm/guest.sh).
mark_log() {
	mark=''
	[ ! -e /proc/lockdep ] || return 0
	[ "$(cat /proc/sys/kernel/printk_devkmsg 2>/dev/null)" != off ] || return 0
	echo "<6>run_tests.sh $$ $n." 2>/dev/null >/dev/kmsg || return 0
	mark="run_tests.sh $$ $n."
}

# Show what it has said since, without the time. So-called splats are left to
# vm/guest.sh, too, which knows one that is not the module's. That a memory cgroup
# has killed for its limit is no fault of the kernel's: tests look at the count.
warned() {
	local lines
	[ -n "$mark" ] || return 1
	lines=$(dmesg -r 2>/dev/null | awk -v mark="$mark" '
		index($0, mark) { seen = 1; lines = held = ""; splat = oom = 0; next }
		!seen { next }
		/\[ cut here \]/ { splat = 1 }
		/ invoked oom-killer: / { oom = 1 }
		/Memory cgroup out of memory: Killed/ { oom = 0; held = ""; next }
		!splat && match($0, /^<[0-9]+>/) && substr($0, 2) % 8 <= 4 {
			sub(/^<[0-9]+>\[ *[0-9.]+\] */, "")
			if (oom)
				held = held $0 "\n"
			else
				lines = lines $0 "\n"
		}
		/\[ end trace / { splat = 0 }
		END {
			if (!seen)
				print "the log has no room for what this program made the kernel say"
			printf "%s", lines held
		}' | grep -Ev "$harmless")
	[ -n "$lines" ] || return 1
	printf '%s\n' "$lines" | head -n 40 | sed 's/^/# # kernel: /'
}

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
	echo "# $((${now%.*} - ${began%.*})) s"
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
