#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: trace.sh
#
# Tests rdma-post trace: what it says of real traffic, that the kernel filters, that it
# leaves nothing in tracefs however it ends, and its errors. Prints TAP. Runs in a guest
# with rxe0 at 10.0.0.1, as root. In the working directory are bin/ with rdma-post and
# rdma-post-run, lib/, tap.sh, jq, script and coreutils' env. /out gets the output as text, and
# as JSON.

# Functions are called by name; jq's variables are not the shell's.
# shellcheck disable=SC2016,SC2317

PATH=$PWD/bin:$PWD:$PATH
export LC_ALL=C.UTF-8
tracing=/sys/kernel/tracing
subject=trace
# shellcheck source=../lib/tap.sh
. ./tap.sh

evidence() {
	head -n 40 out
	cat err
	echo "instances: $(ls $tracing/instances)"
}

silent() { [ ! -s err ]; }

# Is nothing left, and nothing on?
clean() {
	[ -z "$(ls $tracing/instances)" ] && [ "$(cat $tracing/events/rdma_post/enable)" = 0 ]
}

# says STATUS ARGUMENT...: run rdma-post trace until it ends, and test its exit status
says() {
	want=$1
	shift
	timeout 60 rdma-post trace "$@" >out 2>err
	[ $? = "$want" ] && clean
}

# Is the process $tracer tracing?
traces() {
	(cd "$tracing/instances/rdma-post.$tracer" && grep -q '^1' tracing_on &&
		grep -q '^[1X]' events/rdma_post/enable) 2>/dev/null
}

# begin ARGUMENT...: start rdma-post trace as $tracer. Shells let jobs in the background
# ignore some signals.
begin() {
	env --default-signal=INT,QUIT rdma-post trace "$@" >out 2>err &
	tracer=$!
	while_runs $tracer traces
}

# end SIGNAL [STATUS]: end $tracer
end() {
	kill "-$1" $tracer
	wait $tracer
	[ $? = "${2-0}" ] && clean
}

# until_out PATTERN: wait until $tracer has printed this
until_out() { while_runs $tracer grep -qE -e "$1" out; }

serve() {
	rdma-post-run rping -s -a 10.0.0.1 -p 7174 "$@" >server.log 2>&1 &
	server=$!
	while_runs $server listens 7174
}

# Two programs that exchange three messages.
exchange() {
	serve -C 3 && rdma-post-run rping -c -a 10.0.0.1 -p 7174 -C 3 >client.log 2>&1 &&
		wait "$server"
}

text_tests() {
	begin && exchange && end INT && silent && cp out /out/trace.txt
	result text_ends $?
	head -n 1 out | grep -qE '^TIME +PROGRAM +PID +FILE +WHAT$'
	result text_titles $?
	line='^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}  rping +'
	! sed 1d out | grep -vE "${line}[0-9]+ +[0-9]+  (id|qp) [0-9]+: "
	result text_lines $?
	grep -qE "$line$server +[0-9]+  id [0-9]+: from bound to listen\$" out &&
		grep -qE "$line$server .* id [0-9]+: event CONNECT_REQUEST of listener [0-9]+\$" out &&
		grep -qE "  id [0-9]+: from route-resolved to connecting\$" out &&
		[ "$(grep -cE '  id [0-9]+: event ESTABLISHED$' out)" = 2 ] &&
		grep -qE '  qp [0-9]+: posted 1 to the receive queue$' out &&
		grep -qE '  qp [0-9]+: send completed, wr_id [0-9a-fx]+$' out &&
		grep -qE '  qp [0-9]+: recv completed, 16 bytes, wr_id [0-9a-fx]+$' out &&
		grep -qE '  qp [0-9]+: (write|read) completed' out &&
		grep -qE '  qp [0-9]+: recv failed: WR_FLUSH_ERR \(the queue pair has stopped\)' out
	result text_words $?
	# Nothing of the kernel's addresses, and no colours.
	! grep -qiE '[8-f][0-9a-f]{15}|'"$(printf '\033')" out
	result text_no_pointers $?
}

json_tests() {
	begin -j && exchange && end TERM && silent && cp out /out/trace.json
	result json_ends $?
	# A line is an object.
	[ "$(wc -l <out)" -gt 50 ] && [ "$(jq -c . out | wc -l)" = "$(wc -l <out)" ]
	result json_lines $?
	jq -e -s '
		["time_us", "event", "program", "pid", "file"] as $first |
		["task", "tid", "cpu"] as $last | {
			state: ["id", "from", "to", "error"],
			event: ["id", "listener", "name", "error", "reason"],
			post: ["qp", "handle", "queue", "count", "posted", "error"],
			completion: ["qp", "cq", "wr_id", "opcode", "status", "bytes"]
		} as $keys |
		([.[].event] | unique) == ($keys | keys) and
		all(.[]; keys_unsorted == $first + $keys[.event] + $last)' out >jq.log 2>&1
	result json_keys $?
	now=$(date +%s)
	jq -e -s --argjson server "$server" --argjson now "$now" '
		all(.[]; .program == "rping" and (.time_us / 1000000 | . <= $now + 1 and
			. > $now - 120)) and
		(map(.pid) | unique | length) == 2 and
		any(.[]; .pid == $server and .event == "state" and .from == "bound" and
			.to == "listen" and .error == null) and
		any(.[]; .event == "event" and .name == "CONNECT_REQUEST" and .listener != null) and
		any(.[]; .event == "post" and .queue == "send" and .posted == 1 and .qp > 0) and
		any(.[]; .event == "completion" and .status == "SUCCESS" and .opcode == "recv" and
			.bytes == 16 and (.wr_id | startswith("0x")))' out >jq.log 2>&1
	result json_values $?
}

# Let two programs exchange messages all the time, which makes the guest slow.
traffic() {
	serve && { rdma-post-run rping -c -a 10.0.0.1 -p 7174 -C 100000000 >client.log 2>&1 &
		client=$!; }
}

pause() { kill -STOP "$client"; }
resume() { kill -CONT "$client"; }

choice_tests() {
	traffic && says 0 -n 5 && silent && [ "$(wc -l <out)" = 6 ]
	result count $?
	says 0 -j -n 50 -e completion,post -e post && jq -e -s 'length == 50 and
		([.[].event] | unique) == ["completion", "post"]' out >jq.log
	result events $?
	says 0 -s 0.5 -e state && silent && [ "$(wc -l <out)" = 1 ]
	result seconds $?
	says 0 -j -n 100 --pid "$client" && jq -e -s --argjson pid "$client" \
		'length == 100 and all(.[]; .pid == $pid)' out >jq.log
	result pid $?
	pause
	# A process that has a file from another, which opened it.
	(exec 5<>/dev/rdma_post; sleep 1000 & echo $! >child; exec sleep 1000) &
	opener=$!
	while_runs $opener [ -s child ]
	begin --pid "$(cat child)" && end INT
	result pid_has_another_file $?
	begin --pid "$(cat child)"
	file=$(rdma-post show -j "$(cat child)" | jq '.files[0].file')
	cat "$tracing/instances/rdma-post.$tracer"/events/rdma_post/rpost_*/filter | sort -u >out
	[ "$(cat out)" = "pid == $(cat child) || file == $file" ]
	result pid_is_the_kernels_filter $?
	end INT
	kill "$(cat child)" $opener
}

end_tests() {
	for signal in INT TERM HUP QUIT; do
		begin && until_out '^TIME' && end $signal && silent
		result "clean_after_$signal" $?
	done
	resume
	begin && until_out completed && end INT && silent
	result clean_while_events_come $?
	# head ends after a line, while events go on.
	(rdma-post trace 2>err; echo $? >status) | head -n 2 >out
	[ "$(cat status)" = 141 ] && silent && clean
	result clean_after_closed_pipe $?
	pause
	# And here nothing more comes.
	mkfifo pipe
	sh -c 'echo $$ >tracer; exec rdma-post trace -e state' >pipe 2>err &
	job=$!
	head -n 1 <pipe >out
	tracer=$(cat tracer)
	wait $job
	[ $? = 141 ] && silent && clean
	result clean_after_silent_closed_pipe $?
	timeout 60 rdma-post trace >/dev/full 2>err
	[ $? = 2 ] && grep -q 'cannot write: No space' err && [ "$(wc -l <err)" = 1 ] && clean
	result clean_after_full_disk $?
	begin
	kill -KILL $tracer
	wait $tracer 2>/dev/null
	resume
	! clean && says 0 -n 1
	result clean_after_kill_and_next $?
	# Two at a time, each with its own.
	rdma-post trace >/dev/null 2>&1 &
	first=$!
	# From then on it handles signals.
	while_runs $first [ -d "$tracing/instances/rdma-post.$first" ]
	begin -e post && kill $first && wait $first && until_out post && end INT
	result two $?
}

# A tracer that is stopped loses events; then it says so.
lost_tests() {
	for option in '' -j; do
		# shellcheck disable=SC2086
		begin -e post,completion $option && kill -STOP $tracer &&
			echo 4 >$tracing/instances/rdma-post.$tracer/buffer_size_kb
		while_runs "$client" grep -q '^overrun: [1-9]' \
			$tracing/instances/rdma-post.$tracer/per_cpu/cpu*/stats
		pause
		kill -CONT $tracer
		until_out '^\.\.\. [0-9]+ events of CPU [0-9]+ were lost|"event": "lost"' && end INT &&
			grep -qE '[0-9]+ events were lost' err
		result "lost$option" $?
		resume
	done
	pause
	jq -e -s 'any(.[]; .event == "lost" and .lost > 0 and .cpu >= 0 and length == 3)' out >jq.log
	result lost_keys $?
}

# Names of tasks that look like the end of a line.
name_test() {
	odd=$(printf 'a\nb')
	ln -s "$(command -v rping)" "$odd"
	begin -j && { PATH=$PWD:$PATH rdma-post-run "./$odd" -c -a 10.0.0.1 -p 7199 >client.log 2>&1
		until_out REJECTED && end INT; } &&
		jq -e -s 'all(.[]; .event | IN("state", "event", "post", "completion")) and
			any(.[]; .task == "a\nb" and .program == "a_b")' out >jq.log
	result name_with_end_of_line $?
	begin -e event && { rdma-post-run rping -c -a 10.0.0.1 -p 7199 >client.log 2>&1
		until_out 'event REJECTED: reason 8, no program listens there$' && end INT; }
	result rejected $?
}

# Colours are for terminals.
terminal_test() {
	resume
	script -qec 'TERM=xterm rdma-post trace -n 20' /dev/null </dev/null >out 2>err
	grep -q "$(printf '\033')\\[" out && clean
	result colours_on_a_terminal $?
}

error_tests() {
	says 2 --pid 999999 && grep -q 'no process 999999' err && [ ! -s out ]
	result no_process $?
	vm-user rdma-post trace >out 2>err
	[ $? = 2 ] && grep -q 'only root may trace' err && [ "$(wc -l <err)" = 1 ] && clean
	result no_root $?
	echo raw >$tracing/trace_options
	says 0 -n 5 -j && jq -e -s 'all(.[]; .event != "other")' out >jq.log
	result global_options $?
	echo noraw >$tracing/trace_options
	kill "$client" "$server"
	wait
	begin && rmmod rdma_post && wait $tracer
	[ $? = 2 ] && grep -q 'the module rdma_post was unloaded' err && [ -z "$(ls $tracing/instances)" ]
	result module_unloaded $?
	timeout 60 rdma-post trace >out 2>err
	[ $? = 2 ] && grep -q 'not loaded; see rdma-post doctor' err && [ -z "$(ls $tracing/instances)" ]
	result no_module $?
	insmod /vm/modules/rdma_post.ko
	umount $tracing
	[ ! -d /sys/kernel/debug/tracing ] || umount -l /sys/kernel/debug
	timeout 60 rdma-post trace >out 2>err
	[ $? = 2 ] && grep -q 'not mounted; try mount -t tracefs' err
	result not_mounted $?
	mount -t tracefs none $tracing
}

echo "TAP version 13"
text_tests
json_tests
choice_tests
end_tests
lost_tests
name_test
terminal_test
error_tests
end_tap
