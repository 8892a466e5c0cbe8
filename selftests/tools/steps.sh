# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# The steps of a check: runs them in parallel, prints a line with the counts and
# the time of each, runs what failed once more, and adds all up. Sourced by
# check.sh, after vm/lib.sh.
#
# A step has these files in $logs:
#   NAME.log       its output; guests' logs are in build/vm/check-NAME
#   NAME.count     "PASSED FAILED SKIPPED"
#   NAME.running   while it runs
#   NAME.failed    what failed, a line each
#   NAME.again     the failed programs that may be run again ("*": the whole step),
#                  and NAME.command, the command of the step
#   NAME.not-run   why it could not be run
# The file "skipped" lists the skipped tests with their reasons, "flaky" what passed
# another time, and "times" the seconds of each step, and its CPU seconds, which
# depend less on the load of the host.

logs=$build_dir/check
rm -rf "$logs"
mkdir -p "$logs"
started=$EPOCHREALTIME
jobs=${JOBS:-$(nproc)}
terminal=''
[ ! -t 1 ] || terminal=1

# The skips that are expected
skip_list=$top_dir/selftests/skips
[ -s "$skip_list" ] || die "$skip_list: no such list"
# More programs than these are not run again: then something is wrong.
most_flaky=3
# While a program is run again: which run it is, 2 or 3.
again=''
# What this run leaves out, and why
left_out=()

# note LINE...: print the lines of a step together. On a terminal the last line
# shows the running steps.
note() {
	exec 9>"$logs/print"
	flock 9
	[ -z "$terminal" ] || printf '\r\033[K'
	printf 'check: %s\n' "$@"
	exec 9>&-
}

# note_file PREFIX FILE: print the lines of a file, if there are any
note_file() {
	local lines
	[ -s "$2" ] || return 0
	mapfile -t lines <"$2"
	note "${lines[@]/#/"$1"}"
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

# once STEP...: run a step whose failures chance does not explain, as a build's
once() {
	local once=1
	"$@"
}

# Print the processes that this one has started, and theirs.
descendants() {
	local child
	for child in $(ps -o pid= --ppid "$1"); do
		descendants "$child"
		echo "$child"
	done
}

# Who kills this shell ends the steps, too, with their guests.
end_steps() {
	local main=$BASHPID
	trap '' TERM
	# shellcheck disable=SC2046
	kill $(descendants "$main") 2>/dev/null
	exit "$1"
}
trap 'end_steps 129' HUP
trap 'end_steps 130' INT
trap 'end_steps 143' TERM

# stop_after SECONDS: end the steps that run then; no other begins
stop_after() {
	local main=$BASHPID
	deadline=$logs/deadline.$main
	(
		stopper=$BASHPID
		sleep "$1" &
		trap 'kill $!; exit' TERM
		wait $!
		touch "$deadline" || exit
		# shellcheck disable=SC2046
		kill $(descendants "$main" | grep -vx "$stopper") 2>/dev/null
	) &
	stopper=$!
	disown "$stopper"
}

too_late() { [ -n "${deadline-}" ] && [ -e "$deadline" ]; }

# cpu_seconds NAME: print the CPU time of the step's commands, with its guests
cpu_seconds() {
	times >"$logs/$1.times"
	awk 'NR == 2 {
		split($1 "m" $2, t, /[ms]+/)
		printf "%.0f", 60 * (t[1] + t[3]) + t[2] + t[4]
	}' "$logs/$1.times"
	rm "$logs/$1.times"
}

# Print a log without what a guest wrote before it was booted again.
settled() {
	awk '/^vm: kernel / { printf "%s", held; held = "" }
		{ held = held $0 "\n" }
		/^vm: .*: booting it once more$/ { held = "" }
		END { printf "%s", held }' "$1"
}

# skips: print the skipped tests of a settled log, "PROGRAM.TEST # SKIP REASON"
skips() { awk -v list=skipped -f "$top_dir/selftests/tools/tap.awk"; }

# unexpected STEP: print those of "PROGRAM.TEST # SKIP REASON" that the list does not
# have for this step, or not so often
unexpected() {
	awk -v step="$1" '
		function glob(text,  i, c, out) {
			for (i = 1; i <= length(text); i++) {
				c = substr(text, i, 1)
				out = out (c == "*" ? ".*" : c ~ /[][.^$+?(){}\\]/ ? "\\" c : c)
			}
			return "^(" out ")$"
		}
		FNR == NR {
			if (!/^(#|$)/ && split($0, f, /\t+/) == 4 && step ~ glob(f[1])) {
				most[++n] = f[2]
				test[n] = glob(f[3])
				reason[n] = glob(f[4])
			}
			next
		}
		{
			why = $0
			sub(/^[^#]*# SKIP */, "", why)
			for (i = 1; i <= n; i++)
				if ($1 ~ test[i] && why ~ reason[i] && seen[i]++ < most[i])
					next
			print
		}' "$skip_list" -
}

# What chance does not explain: what a kernel or a sanitizer says, a guest that hangs or
# dies, objects and memory that stay, bytes that are wrong, keys that open too much, a
# program that crashes.
expected='^[# |]*([a-z0-9_-]+: )?[a-z0-9_/]+\.c:[0-9]+:[^:]*:Expected '
findings='^([AB]: )?vm: FAIL: |^not ok .*# exit=(left behind|the kernel warned)'
findings+="|^# more slab memory|$expected.*\b(memcmp|memchr|untouched|all_bytes|filled)\("
findings+="|$expected.*\b(rp_num_objects|rp_wait_refcnt|rp_wait_objects|rp_pinned[a-z_]*)\("
findings+='|terminated unexpectedly by signal|^not ok .* does not hold'
findings+='|^not ok .* rdma_post: (attack_keys|keys|keys_remote|probe) '
findings+='|(Address|Leak|Thread)Sanitizer|runtime error: |^# .*==[0-9]+== '

# judge KIND NAME LOG STATUS: set passed, failed, skipped, lines (what failed), and
# verdict: passed; failed; again, if it might pass another time; not-run
judge() {
	local kind=$1 name=$2 log=$3.settled status=$4
	# Also match the harness's report of a failure, FILE:LINE:TEST:Expected ..., and
	# what run.sh says of a guest, with lines of its kernel's log.
	local failures='^(# )*not ok|\.c:[0-9]+:.*:Expected |: Test '
	failures+='|^([AB]: )?vm: FAIL: |^\[ *[0-9]+\.[0-9]+\]'
	local unwanted=()
	lines=() verdict=passed passed=0 failed=0 skipped=0
	settled "$3" >"$log"
	if [ "$kind" = tap ]; then
		read -r passed failed skipped < <(awk -f "$top_dir/selftests/tools/tap.awk" \
			"$log")
		[ "$failed" = 0 ] || mapfile -t lines < <(grep -E "$failures" "$log" ||
			echo "not the tests that were planned")
		mapfile -t unwanted < <(skips <"$log" | unexpected "$name")
		failed=$((failed + ${#unwanted[@]}))
		lines+=("${unwanted[@]/#/not in selftests/skips: }")
	elif [ "$status" = 0 ]; then
		passed=1
	fi
	# A guest that could not be set up, a download, a full disk (fetch.sh)
	if [[ $kind$status =~ ^(step4|step125|tap125)$ ]] && ! grep -qE '^(# )*not ok' "$log"; then
		verdict=not-run passed=0 failed=0 skipped=0
		lines=("$({ tail -n 1 "$log"; grep -E '^([AB]: )?vm: ' "$log" |
			grep -v '^vm: kernel '; } | tail -n 1)")
	elif [ "$failed" != 0 ] || [ "$status" != 0 ]; then
		verdict=failed
		# A guest's kernel may have complained.
		[ ${#lines[@]} != 0 ] || mapfile -t lines < <(
			echo "exit status $status, after:"
			tail -n 25 "$log")
		[ "$failed" != 0 ] || failed=1
		[ ${#unwanted[@]} != 0 ] || [ "$status" -gt 1 ] || grep -qE "$findings" "$log" ||
			verdict=again
	fi
	failed_programs <"$log" >"$3.programs"
	rm "$log"
}

# Print the names of the failed programs of a settled log: those of run_tests.sh, those
# of compare.sh behind "api/", or "*" if something else has failed, too, and these are
# not too many.
failed_programs() {
	awk '
		/^not ok [0-9]+ selftests: rdma_post: / { print $6; n++; next }
		/^not ok .*# librdmacm: / { sub(/\..*/, "", $4); print "api/" $4; n++; next }
		/^not ok / { print "*"; n++ }
		END { if (!n) print "*" }' | sort -u | awk '
		$1 == "*" { all = 1 }
		{ names = names $1 "\n" }
		END { printf "%s", all && NR <= 3 ? "*\n" : names }'
}

# run KIND NAME COMMAND...
run() {
	local kind=$1 name=$2 step=$2 log=$logs/$2.log then=$EPOCHREALTIME status=0
	local passed failed skipped verdict lines see=()
	shift 2
	if too_late; then
		echo "no time was left" >"$logs/$name.not-run"
		return 1
	fi
	touch "$logs/$name.running"
	"$@" >"$log" 2>&1 || status=$?
	# What stop_after has killed is no failure.
	! too_late || return 1
	judge "$kind" "$name" "$log" "$status"
	[ "$kind" != tap ] || settled "$log" | skips | sed "s/^/$name: /" >>"$logs/skipped"
	case $verdict in
	not-run) printf '%s\n' "${lines[@]}" >"$logs/$name.not-run" ;;
	failed | again) printf '%s\n' "${lines[@]}" >"$logs/$name.failed" ;;
	esac
	if [ "$verdict" = again ] && [ -z "${once-}" ]; then
		{
			echo "$kind"
			printf '%q ' "$@"
			echo
		} >"$logs/$name.command"
		mv "$log.programs" "$logs/$name.again"
	fi
	rm -f "$log.programs" "$logs/$name.running"
	[ "$verdict" = passed ] || see=("see $log")
	{
		printf '%s %s ' "$name" "$(seconds_since "$then")"
		cpu_seconds "$name"
		echo
	} >>"$logs/times"
	echo "$passed $failed $skipped" >"$logs/$name.count"
	note "$(printf '%-28s %-36s %5.0f s' "$name" \
		"$passed passed, $failed failed, $skipped skipped" \
		"$(seconds_since "$then")")" "${see[@]/#/  | }" "${lines[@]/#/  | }"
	[ "$verdict" = passed ]
}

# step NAME COMMAND...: run a step without TAP, which counts as one test
step() { run step "$@"; }

# tap NAME COMMAND...: run a step whose output is TAP, nested or not. If no test
# failed, an exit status other than 0 counts as a failure.
tap() { run tap "$@"; }

# first_words NAME PROGRAM: print what a program said first when it failed
first_words() {
	settled "$logs/$1.log" | awk -v program="${2#api/}" -v all="$2" '
		/^# selftests: rdma_post: / { within = $NF == program }
		all == "*" || within || index($0, "# " program "-") == 1 ||
				index($4, program ".") == 1 {
			if (/:Expected |: Test |not ok /) {
				sub(/^[# ]*/, "")
				print
				exit
			}
		}' | grep . || head -n 1 "$logs/$1.failed"
}

# run_again NAME PROGRAM: run a program of a step, or the whole step ("*"), at most
# twice more; true if it passes
run_again() {
	local name=$1 step=$1 program=$2 kind command log status again
	local passed failed skipped verdict lines
	{ read -r kind && read -r command; } <"$logs/$name.command"
	for again in 2 3; do
		! too_late || return 1
		log=$logs/$name.${program//[\/\*]/-}.$again.log status=0
		(
			unset RPOST_RESUME RPOST_PASSED
			[ "$program" = '*' ] || export RPOST_ONLY=$program
			eval "$command"
		) >"$log" 2>&1 || status=$?
		judge "$kind" "$name" "$log" "$status"
		rm -f "$log.programs"
		case $verdict in
		passed) settled "$log" | skips | grep -q '# SKIP unmet' || return 0 ;;
		again) ;;
		*) break ;;
		esac
	done
	printf '%s\n' "$program, run again: ${lines[0]-unmet}" >>"$logs/$name.failed"
	return 1
}

# Run the failed programs again, one at a time.
run_all_again() {
	local file name program programs all_pass n
	n=$(cat "$logs"/*.again 2>/dev/null | wc -l)
	[ "$n" != 0 ] || return 0
	if [ "$n" -gt $most_flaky ]; then
		note "$n programs failed; not more than $most_flaky would be run again"
		return
	fi
	for file in "$logs"/*.again; do
		name=${file##*/} all_pass=1
		name=${name%.again}
		mapfile -t programs <"$file"
		for program in "${programs[@]}"; do
			note "running $name ${program/\*/} again"
			if run_again "$name" "$program"; then
				echo "$name: $program: $(first_words "$name" "$program")" \
					>>"$logs/flaky"
			else
				all_pass=''
			fi
		done
		[ -n "$all_pass" ] || continue
		rm "$logs/$name.failed"
		awk '{ print $1, 0, $3 }' "$logs/$name.count" >"$logs/$name.count.new"
		mv "$logs/$name.count.new" "$logs/$name.count"
	done
}

# Print the sums of the programs' counts over all steps.
sums() {
	local counts='faults survived|failure points swept'
	counts+='|injection points in callbacks'
	grep -ohE "($counts): [0-9]+" "$logs"/*.log | awk -F ': ' '
		{ sum[$1] += $2 }
		END { for (name in sum) print name ": " sum[name] }' | sort
}

# The tests that did not meet the chance that they wait for
unmet() { grep '# SKIP unmet' "$logs/skipped" 2>/dev/null; }

# Wait for all steps, print the result, and exit: 0 if nothing failed and all could be run.
finish() {
	local p f s file name lines n_flaky n_not_run=0 n_unmet more=''
	wait_below 1
	[ -z "${stopper-}" ] || too_late || kill "$stopper" 2>/dev/null
	for file in "$logs"/*.running; do
		[ -e "$file" ] || continue
		name=${file##*/}
		name=${name%.running}
		if too_late; then
			echo "no time was left to end it" >"$logs/$name.not-run"
		else
			echo "the step did not come to its end" >>"$logs/$name.failed"
			echo "0 1 0" >"$logs/$name.count"
		fi
	done
	run_all_again
	touch "$logs/flaky" "$logs/skipped"
	read -r p f s < <(cat "$logs"/*.count 2>/dev/null |
		awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
	mapfile -t lines < <(sums)
	[ ${#lines[@]} = 0 ] || note "${lines[@]}"
	unmet >"$logs/unmet"
	note_file "UNMET " "$logs/unmet"
	note_file "FLAKY " "$logs/flaky"
	for file in "$logs"/*.failed; do
		name=${file##*/}
		[ ! -e "$file" ] || note_file "FAILED ${name%.failed}: " "$file"
	done
	for file in "$logs"/*.not-run; do
		[ -e "$file" ] || continue
		name=${file##*/}
		n_not_run=$((n_not_run + 1))
		note_file "NOT RUN ${name%.not-run}: " "$file"
	done
	n_flaky=$(wc -l <"$logs/flaky")
	n_unmet=$(wc -l <"$logs/unmet")
	[ "$n_unmet" = 0 ] || more+=", $n_unmet unmet"
	[ "$n_flaky" = 0 ] || more+=", $n_flaky flaky"
	[ "$n_not_run" = 0 ] || more+=", $n_not_run not run"
	[ ${#left_out[@]} = 0 ] || note "${left_out[@]}"
	note "$(seconds_since "$started") s; logs, and the reasons of what was skipped, in $logs"
	echo "$p passed, $f failed, $s skipped$more"
	[ "$f" = 0 ] && [ "$n_not_run" = 0 ]
	exit
}
