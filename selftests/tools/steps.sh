# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Steps of a check: runs them beside each other, prints a line for each with what it
# counted and its time, and adds them up. Sourced by check.sh, after vm/lib.sh.
#
# A step leaves NAME.log, NAME.count ("PASSED FAILED SKIPPED") and, while it runs,
# NAME.running in $logs; "failed" and "skipped" there name what failed, and what
# was skipped with the reason; "times" has the seconds of each step and those of CPUs,
# which depend less on what else the host does.

logs=$build_dir/check
rm -rf "$logs"
mkdir -p "$logs"
started=$EPOCHREALTIME
jobs=${JOBS:-$(nproc)}
terminal=''
[ ! -t 1 ] || terminal=1

# One line, or the lines of one step, without those of another between them. On a
# terminal the last line says which steps run.
note() {
	exec 9>"$logs/print"
	flock 9
	[ -z "$terminal" ] || printf '\r\033[K'
	printf 'check: %s\n' "$@"
	exec 9>&-
}

show_running() {
	local file names=''
	for file in "$logs"/*.running; do
		[ -e "$file" ] || continue
		file=${file##*/}
		names+=" ${file%.running}"
	done
	exec 9>"$logs/print"
	flock 9
	printf '\r\033[K%s s:%s' "$(seconds_since "$started")" "${names::150}"
	exec 9>&-
}

# wait_below N: wait until fewer than N steps run
wait_below() {
	while [ "$(jobs -rp | wc -l)" -ge "$1" ]; do
		if [ -n "$terminal" ]; then
			show_running
			sleep 1
		else
			wait -n
		fi
	done
}

# queue STEP...: run a step beside others
queue() {
	wait_below "$jobs"
	"$@" &
}

# cpu_seconds NAME: those of this step's commands, and so of its guests
cpu_seconds() {
	times >"$logs/$1.times"
	awk 'NR == 2 {
		split($1 "m" $2, t, /[ms]+/)
		printf "%.0f", 60 * (t[1] + t[3]) + t[2] + t[4]
	}' "$logs/$1.times"
	rm "$logs/$1.times"
}

# done_with NAME START PASSED FAILED SKIPPED [LINE...]: a step has ended
done_with() {
	local name=$1 then=$2 counts="$3 $4 $5" result
	result="$3 passed, $4 failed, $5 skipped"
	shift 5
	rm -f "$logs/$name.running"
	{
		printf '%s %s ' "$name" "$(seconds_since "$then")"
		cpu_seconds "$name"
		echo
	} >>"$logs/times"
	echo "$counts" >"$logs/$name.count"
	note "$(printf '%-28s %-36s %5.0f s' "$name" "$result" \
		"$(seconds_since "$then")")" "${@/#/  | }"
}

# step NAME COMMAND...: a step without TAP counts as one test
step() {
	local name=$1 log=$logs/$1.log then=$EPOCHREALTIME lines
	shift
	touch "$logs/$name.running"
	if "$@" >"$log" 2>&1; then
		done_with "$name" "$then" 1 0 0
		return
	fi
	echo "$name" >>"$logs/failed"
	mapfile -t lines < <(tail -n 25 "$log")
	done_with "$name" "$then" 0 1 0 "see $log" "${lines[@]}"
	return 1
}

# tap NAME COMMAND...: a step whose output is TAP, programs nested in it or not.
# An exit status that no test accounts for, like that of a guest whose kernel
# complained, is a failure.
tap() {
	local name=$1 log=$logs/$1.log then=$EPOCHREALTIME status p f s lines=()
	# And what the harness says of a failure: FILE:LINE:TEST:Expected ...
	local failures='^(# )*not ok|\.c:[0-9]+:.*:Expected |: Test '
	shift
	touch "$logs/$name.running"
	"$@" >"$log" 2>&1
	status=$?
	read -r p f s < <(awk -f "$top_dir/selftests/tools/tap.awk" "$log")
	if [ "$f" != 0 ]; then
		mapfile -t lines < <(grep -E "$failures" "$log" ||
			echo "tests that were planned")
		printf '%s\n' "${lines[@]/#/$name: }" >>"$logs/failed"
	elif [ "$status" != 0 ]; then
		f=1
		echo "$name: exit status $status" >>"$logs/failed"
		mapfile -t lines < <(echo "exit status $status, see $log"
			tail -n 25 "$log")
	fi
	grep -E '^(# )*ok .*# SKIP' "$log" |
		sed "s/^[# ]*ok [0-9]*/$name:/" >>"$logs/skipped"
	done_with "$name" "$then" "$p" "$f" "$s" "${lines[@]}"
}

# What programs counted, added up over all steps.
sums() {
	local counts='faults survived|failure points swept'
	counts+='|injection points in callbacks'
	grep -ohE "($counts): [0-9]+" "$logs"/*.log | awk -F ': ' '
		{ sum[$1] += $2 }
		END { for (name in sum) print name ": " sum[name] }' | sort
}

# The verdict, and the exit.
finish() {
	local passed failed skipped lines
	wait_below 1
	read -r passed failed skipped < <(cat "$logs"/*.count |
		awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
	mapfile -t lines < <(sums)
	[ ${#lines[@]} = 0 ] || note "${lines[@]}"
	if [ -s "$logs/failed" ]; then
		mapfile -t lines <"$logs/failed"
		note "${lines[@]/#/FAILED }"
	fi
	note "$(seconds_since "$started") s; logs, and the reasons of what was skipped, in $logs"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}
