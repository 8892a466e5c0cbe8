# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The steps of a check: runs them in parallel, prints a line with the counts and
# the time of each, and adds them up. Sourced by check.sh, after vm/lib.sh.
#
# A step writes NAME.log, NAME.count ("PASSED FAILED SKIPPED") and, while it
# runs, NAME.running in $logs. The file "failed" there lists the failed tests,
# "skipped" the skipped ones with their reasons, and "times" the seconds of each
# step, and its CPU seconds, which depend less on the load of the host.

logs=$build_dir/check
rm -rf "$logs"
mkdir -p "$logs"
started=$EPOCHREALTIME
jobs=${JOBS:-$(nproc)}
terminal=''
[ ! -t 1 ] || terminal=1

# note LINE...: print the lines of a step together. On a terminal the last line
# shows the running steps.
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

# queue STEP...: run a step in parallel with others
queue() {
	wait_below "$jobs"
	"$@" &
}

# cpu_seconds NAME: print the CPU time of the step's commands, with its guests
cpu_seconds() {
	times >"$logs/$1.times"
	awk 'NR == 2 {
		split($1 "m" $2, t, /[ms]+/)
		printf "%.0f", 60 * (t[1] + t[3]) + t[2] + t[4]
	}' "$logs/$1.times"
	rm "$logs/$1.times"
}

# done_with NAME START PASSED FAILED SKIPPED [LINE...]: record the end of a step
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

# step NAME COMMAND...: run a step without TAP, which counts as one test
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

# tap NAME COMMAND...: run a step whose output is TAP, nested or not. If no test
# failed, an exit status other than 0 counts as a failure: a guest's kernel may
# have complained.
tap() {
	local name=$1 log=$logs/$1.log then=$EPOCHREALTIME status p f s lines=()
	# Also match the harness's report of a failure, FILE:LINE:TEST:Expected ..., and
	# what run.sh says of a guest, with lines of its kernel's log.
	local failures='^(# )*not ok|\.c:[0-9]+:.*:Expected |: Test '
	failures+='|^vm: FAIL: |^\[ *[0-9]+\.[0-9]+\]'
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
		{
			echo "$name: exit status $status, after:"
			tail -n 6 "$log"
		} >>"$logs/failed"
		mapfile -t lines < <(echo "exit status $status, see $log"
			tail -n 25 "$log")
	fi
	grep -E '^(# )*ok .*# SKIP' "$log" |
		sed "s/^[# ]*ok [0-9]*/$name:/" >>"$logs/skipped"
	done_with "$name" "$then" "$p" "$f" "$s" "${lines[@]}"
}

# Print the sums of the programs' counts over all steps.
sums() {
	local counts='faults survived|failure points swept'
	counts+='|injection points in callbacks'
	grep -ohE "($counts): [0-9]+" "$logs"/*.log | awk -F ': ' '
		{ sum[$1] += $2 }
		END { for (name in sum) print name ": " sum[name] }' | sort
}

# Wait for all steps, print the result, and exit.
finish() {
	local passed failed skipped lines file
	wait_below 1
	for file in "$logs"/*.running; do
		[ -e "$file" ] || continue
		file=${file%.running}
		echo "${file##*/}: the step did not come to its end" >>"$logs/failed"
		echo "0 1 0" >"$file.count"
	done
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
