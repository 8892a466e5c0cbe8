#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: files.sh
#
# Tests rdma-post list, show, stat and top with two users, real traffic, and an open file
# that several processes share. Prints TAP. Runs in a guest with rxe0 at 10.0.0.1, as root.
# In the working directory are bin/ with rdma-post and rdma-post-run, lib/, tap.sh, hold, jq and
# tmux, which is the terminal for top. /out gets the output for Prometheus, and the screens.

# Functions are called by name; jq's variables are not the shell's.
# shellcheck disable=SC2016,SC2317

PATH=$PWD/bin:$PWD:$PATH
export LC_ALL=C.UTF-8 TERM=screen
container=/sys/fs/cgroup/tenant.slice/docker-0123456789abcdef0123456789abcdef.scope
subject=files
# shellcheck source=../lib/tap.sh
. ./tap.sh

# tool STATUS ARGUMENT...: run rdma-post, by $as, and test its exit status
as=''
tool() {
	want=$1
	shift
	# shellcheck disable=SC2086
	$as rdma-post "$@" >out 2>err
	[ $? = "$want" ]
}

# has FILTER [PATTERN]: test the output's JSON, and what is on standard error
has() {
	jq -e --argjson server "$server" --argjson client "$client" --argjson sharer \
		"$sharer" "$1" out >jq.log 2>&1 && silent "${2-}"
}

longer_than() { [ "$(wc -l <"$2")" -gt "$1" ]; }
silent() { if [ -n "$1" ]; then grep -q -e "$1" err; else [ ! -s err ]; fi; }

none_tests() {
	tool 0 list && [ "$(wc -l <out)" = 1 ] && silent
	result list_none $?
	tool 0 list -j && jq -e '. == { files: [], hidden_processes: 0,
		descriptors_left_out: 0 }' out >jq.log && silent
	result list_none_json $?
	rmmod rdma_post
	tool 2 list && grep -q 'not loaded' err && [ ! -s out ]
	result list_no_module $?
	insmod /vm/modules/rdma_post.ko
}

# Let the ends of rping exchange messages, and a process with two descriptors of a file
# have a child.
begin() {
	rdma-post-run rping -s -a 10.0.0.1 -p 7174 >server.log 2>&1 &
	server=$!
	while_runs $server listens 7174 || return
	mkdir -p $container/init
	sh -c 'echo $$ >$0/init/cgroup.procs
		exec vm-user rdma-post-run rping -c -a 10.0.0.1 -p 7174 -C 100000000' \
		$container >client.log 2>&1 &
	client=$!
	(exec 5<>/dev/rdma_post 6<&5; sleep 1000 & echo $! >child; exec sleep 1000) &
	sharer=$!
	while_runs $client has_begun
}

has_begun() {
	tool 0 show -j "$client" && jq -e '.files[0].values.total_ops_send > 10' out >jq.log &&
		[ -s child ]
}

end() {
	kill "$server" "$client" "$sharer" "$(cat child)"
	wait
	rmdir $container/init $container "${container%/*}"
}

list_tests() {
	tool 0 list -j && has '.hidden_processes == 0 and (.files | length) == 3 and
		(.files | map({ (.holders[0].pid | tostring): . }) | add) as $f |
		$f[$server | tostring] as $s | $f[$client | tostring] as $c |
		$s.holders[0].user == "root" and $s.holders[0].program == "rping" and
		$s.devices == ["rxe0"] and $s.connections == 2 and $s.objects == 13 and
		$s.holders[0].cgroup == "/" and $s.holders[0].container == null and
		$c.holders[0].user == "nobody" and $c.holders[0].uid == 65534 and
		$c.connections == 1 and $c.bytes_charged > 100000 and $c.bytes_pinned > 4095 and
		$c.holders[0].container == "docker-0123456789ab"'
	result list_json $?
	tool 0 list && silent && grep -qE \
		" $client +nobody +rping +docker-0123456789ab +rxe0 +[0-9]+ +1 +[0-9.]+K +" out
	result list_text $?
}

# The child and the parent have both descriptors of one file.
shared_tests() {
	child=$(cat child)
	tool 0 list -j && has "[.files[] | select(any(.holders[]; .pid == \$sharer))] |
		length == 1 and .[0].holders[0].descriptors == [5, 6] and
		(.[0].holders | map(.pid)) == [\$sharer, $child] and .[0].objects == 0"
	result shared_json $?
	tool 0 list && [ "$(grep -c '^ *[0-9]* .* sleep ' out)" = 2 ] &&
		grep -qE "^ *[0-9]+ +$child +root +sleep +- +\" " out
	result shared_text $?
	tool 0 show "$child" && grep -q "held by process $sharer, .*, descriptors 5 6" out &&
		grep -q "held by process $child, " out && [ "$(grep -c ^file out)" = 1 ]
	result shared_show $?
}

show_tests() {
	tool 0 show -j "$client" && has '.pid == $client and (.files | length) == 1 and
		(.files[0] | .values.total_ops_send > 10 and .values.total_errors == 0 and
		.values.limit_user_bytes > 0 and (.connections | length) == 1 and
		(.connections[0] | .state == "connected" and .peer == "10.0.0.1:7174" and
		(.local | startswith("10.0.0.1:")) and .sq_size >= 1 and .rq_size >= 1))'
	result show_json $?
	tool 0 show "$server" && silent && grep -qE \
		'^ +[0-9]+ +connected +rxe0 +10.0.0.1:7174 +10.0.0.1:[0-9]+ +[0-9]+ +[0-9]+/[0-9]+ ' \
		out && grep -qE '^    qp +1$' out && grep -qE '^    sq +[0-9]+ of [0-9]+ entries' out
	result show_text $?
	# All that the kernel tells is there.
	grep ^rpost- "/proc/$server/fdinfo/3" | grep -v '^rpost-\(connection\|device\|file\):' |
		sed 's/^rpost-//; s/:.*//; s/-/_/g' | sort >want
	tool 0 show -j "$server" && has '.files[0].values.limit_user_bytes == null' &&
		jq -r '.files[0].values | keys[]' out | sort | cmp - want
	result show_everything $?
	tool 1 show $$ && silent "process $$ has no open file"
	result show_none $?
	tool 2 show 999999 && silent 'no process 999999'
	result show_no_process $?
}

stat_tests() {
	tool 0 stat -j && has '(.samples | length) == 1 and .samples[0].nanoseconds == null and
		([.samples[0].files[] | select(.holders[0].pid == $client)][0].done |
		.ops_send > 10 and .bytes_send > 100 and .completions > 20 and .errors == 0 and
		.comp_sleeps > 0)'
	result stat_json $?
	tool 0 stat && silent && grep -qE " $client +nobody +rping( +[0-9.]+[KMG]?){7}\$" out
	result stat_text $?
	# What two intervals have seen is part of what a third, longer one sees.
	rdma-post stat -j >first
	tool 0 stat -j -i 0.5 -n 2 && rdma-post stat -j >last && jq -e -s --argjson pid "$client" '
		def ops: [.files[] | select(.holders[0].pid == $pid)][0].done.ops_send;
		([.[1].samples[] | ops] | add) as $seen | (.[1].samples | length) == 2 and
		all(.[1].samples[]; .nanoseconds >= 500000000) and $seen > 0 and
		$seen <= (.[2].samples[0] | ops) - (.[0].samples[0] | ops)' first out last >jq.log
	result stat_intervals $?
	tool 0 stat -i 0.5 -n 2 && silent && [ "$(grep -c OPS/s out)" = 2 ] &&
		[ "$(grep -cE " $client +nobody +rping +[1-9]" out)" = 2 ]
	result stat_rates $?
	rdma-post stat -j -i 0.1 >out 2>err &
	while_runs $! grep -q nanoseconds out
	kill $!
	wait $! && jq -e '.samples | length > 0' out >jq.log && silent
	result stat_signal $?
	# As by nohup.
	(trap '' HUP; exec rdma-post stat -i 0.1) >out 2>err &
	while_runs $! grep -q OPS/s out
	kill -HUP $!
	lines=$(wc -l <out)
	while_runs $! longer_than $((lines + 10)) out
	kill $! && wait $! && silent
	result stat_ignored_signal $?
}

# Test what promtool would: a name has HELP and TYPE once, before all of its series.
prometheus_test() {
	# A name with what must be escaped
	mkfifo odd_ends
	(exec 5<>/dev/rdma_post; exec sh -c 'printf "a\"\\\\b\tc" >/proc/$$/comm
		echo >odd_begins; read -r _ <odd_ends') &
	odd=$!
	while_runs $odd [ -s odd_begins ]
	tool 0 stat --prometheus && silent && cp out /out/metrics && awk '
		BEGIN { value = "\"([^\"\\\\]|\\\\[\"\\\\n])*\"" }
		$2 == "HELP" { if (seen[$3]++ || NF < 4) exit 1; name = $3; next }
		$2 == "TYPE" { if ($3 != name || $4 !~ /^(counter|gauge)$/) exit 1
			if (($4 == "counter") != ($3 ~ /_total$/)) exit 1; next }
		$0 !~ ("^" name "\\{pid=\"[0-9]+\",user=\"[a-z]+\",program=" value \
			",container=" value ",cgroup=" value ",device=" value \
			",file=\"[0-9]+\"(,[a-z]+=\"[a-z_-]+\")?} [0-9]+$") { exit 1 }
		series[$1]++ { exit 1 }
		$1 ~ /^rdma_post_bytes_total.*operation="send"/ && $2 > 0 { sends++ }
		END { if (sends < 2) exit 1 }' out
	result prometheus $?
	grep '^rdma_post_connections{' out >connections
	grep -q "{pid=\"$client\",user=\"nobody\",program=\"rping\",container=\"docker-0123456789ab\"," \
		connections &&
		grep -q "{pid=\"$server\",user=\"root\",program=\"rping\",container=\"\"," connections &&
		grep -qF "{pid=\"$odd\",user=\"root\",program=\"a\\\"\\\\b?c\"," connections
	result prometheus_program_and_container $?
	kill $odd
	wait $odd
}

# shows COMMAND...: what the terminal shows, when COMMAND finds it in the file screen
shows() {
	until_true 60 captured "$@" || { cp screen out && return 1; }
}

captured() { tmux capture-pane -p >screen && "$@"; }

# fits COLUMNS ROWS: all rows are within the terminal, and there is one of $client
fits() {
	grep -q "OPS/s" screen && grep -q "q: end" screen && grep -qE "^ *$client " screen &&
		[ "$(wc -l <screen)" -le "$2" ] &&
		awk -v columns="$1" 'length > columns { exit 1 }' screen
}

# sorted TITLE: this column is the one by which rows are sorted, the first title in bold
sorted() { tmux capture-pane -pe | grep -q "1m[^A-Z]*$1"; }

wide() { fits 200 50 && grep -q 'CONTAINER.*PROGRAM' screen && grep -q docker-0123456789ab screen; }
narrow() { fits 40 10 && ! grep -q CONTAINER screen && grep -q PROGRAM screen; }
by_pid() { sed '1,2d; /^ *[0-9]/!d' screen | sort -n -c 2>err; }

# begin_top COLUMNS ROWS: run top in a terminal
begin_top() {
	echo "set -g status off" >tmux.conf
	tmux -f tmux.conf new-session -d -x "$1" -y "$2" "trap : INT
		sh -c 'echo \$\$ >top.pid; exec rdma-post top -i 0.5'
		echo \"status \$?\"; stty -a; exec sleep 1000"
}

# ended STATUS: top has ended, and the terminal is as it was
ended() {
	grep -qx "status $1" screen && grep -q '[^-]icanon' screen &&
		grep -q '[^-]echo ' screen && ! grep -q 'OPS/s' screen &&
		[ "$(tmux display -p '#{cursor_flag} #{alternate_on}')" = "1 0" ]
}

stopped() { [ "$(tmux display -p '#{cursor_flag} #{alternate_on}')" = "1 0" ]; }

top_tests() {
	begin_top 40 10 && shows fits 40 10 && narrow && cp screen /out/top-40x10
	result top_small $?
	shows sorted OPS/s && tmux send-keys '>' && shows sorted OUT/s &&
		tmux send-keys Right && shows sorted IN/s && tmux send-keys Left Left Left Left &&
		shows sorted PID && shows by_pid
	result top_keys $?
	tmux resize-window -x 200 -y 50 && shows wide && cp screen /out/top-200x50
	result top_resized $?
	tmux send-keys q && shows ended 0
	result top_end $?
	tmux kill-server
	begin_top 200 50 && shows wide && tmux send-keys C-c && shows ended 130
	result top_interrupt $?
	tmux kill-server
	begin_top 80 24 && shows fits 80 24 && cp screen /out/top-80x24 &&
		kill -TSTP "$(cat top.pid)" && shows stopped &&
		kill -CONT "$(cat top.pid)" && shows fits 80 24
	result top_stop $?
	kill "$(cat top.pid)" && shows ended 143
	result top_terminate $?
	tmux kill-server
	begin_top 80 24 && shows fits 80 24 && kill -QUIT "$(cat top.pid)" && shows ended 131
	result top_quit $?
	tmux kill-server
	tool 2 top </dev/null && silent 'needs a terminal'
	result top_no_terminal $?
	tool 0 top -j -n 1 -i 0.5 && has '(.samples | length) == 1'
	result top_json $?
}

# Other users see their own files, and are told that there may be others.
user_tests() {
	as=vm-user
	tool 0 list -j && has '[.files[].holders[].pid] == [$client] and .hidden_processes > 0' \
		'cannot look into [0-9]* processes' && [ "$(wc -l <err)" = 1 ]
	result user_list $?
	tool 2 show "$server" && silent 'only its user'
	result user_show_other $?
	tool 0 show "$client" && silent
	result user_show_own $?
	# Who may list the descriptors of others, but not look at them.
	as='setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace'
	tool 0 list -j && has 'all(.files[].holders[]; .pid != $client) and
		.hidden_processes > 0' 'cannot look into [0-9]* processes'
	result no_ptrace_list $?
	tool 2 show "$client" && silent 'only its user'
	result no_ptrace_show $?
	as=''
}

# hold ARGUMENT...: start hold, whose process is then $held
hold() {
	: >held
	"$PWD/hold" "$@" >held 2>err &
	held=$!
	while_runs $held [ -s held ]
}

# found DESCRIPTORS [PATTERN]: root sees a file of $held with this number of descriptors
found() {
	tool 0 list -j && silent "${2-}" && jq -e --argjson held "$held" --argjson n "$1" \
		'.hidden_processes == 0 and ([.files[] | select(.holders[0].pid == $held)] |
		length == 1 and .[0].file > 0 and (.[0].holders[0].descriptors | length) == $n)' \
		out >jq.log && tool 0 show "$held"
}

# Descriptors that are not the device's, or stand behind one that refuses stat().
hold_tests() {
	hold share && found 1 && grep -qE '^    share +1$' out
	result held_share $?
	kill $held
	hold many && found 1024 'left out 6 descriptors'
	result held_many $?
	kill $held
	grep -qw fuse /proc/filesystems || { echo "# no FUSE: not tested"; return; }
	mkdir -p fuse && hold fuse "$PWD/fuse" && found 1
	result held_behind_fuse $?
	kill $held
}

# Processes that begin and end meanwhile are no error.
exit_test() {
	(while :; do (: 5<>/dev/rdma_post); done) &
	looper=$!
	status=0
	for _ in $(seq 10); do
		tool 0 list -j && jq -e .files out >jq.log && silent || status=1
	done
	kill $looper
	wait $looper
	result list_while_others_exit $status
}

echo "TAP version 13"
none_tests
begin
result begin $?
list_tests
shared_tests
show_tests
stat_tests
prometheus_test
top_tests
user_tests
hold_tests
exit_test
end
end_tap
