#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: limit.sh
#
# Tests rdma-post limit and rdma-post run: policies as the user writes and reads them, and
# programs that run under one. Prints TAP. Runs in a guest with rxe0 at 10.0.0.1, as root. In
# the working directory are bin/ with rdma-post and rdma-post-run, lib/, hello, jq, and
# open_mode, which opens a file in the mode that it is given.

# Functions are called by name; jq's variables are not the shell's.
# shellcheck disable=SC2016,SC2317

PATH=$PWD/bin:$PWD:$PATH
export LD_LIBRARY_PATH=$PWD/lib
failed=0 n=0
: >out
: >err

# result NAME STATUS: print a line of TAP, and what the tool has said if the test failed
result() {
	n=$((n + 1))
	if [ "$2" = 0 ]; then
		echo "ok $n limit.$1"
	else
		failed=1
		sed 's/^/#   /' out err
		echo "not ok $n limit.$1"
	fi
}

# limit STATUS ARGUMENT...: run rdma-post limit, by $as, and test its exit status
as=''
limit() {
	want=$1
	shift
	# shellcheck disable=SC2086
	$as rdma-post limit "$@" >out 2>err
	[ $? = "$want" ]
}

says() { grep -qF -e "$1" err; }

# same POLICY: a policy is listed as it was given
same() {
	# shellcheck disable=SC2086
	limit 0 tenant $1 && limit 0 -j && jq -e --arg policy "$1" \
		'map(.policy) == [$policy] and map(.cgroup) == ["tenant"]' out >jq.log
}

cgroup_tests() {
	mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
	mkdir -p /sys/fs/cgroup/tenant/inner
	limit 0 && grep -q 'No cgroup has a policy' out
	result none $?
	limit 0 -j && jq -e '. == []' out >jq.log
	result none_json $?
	same '--rate 50000000 --ops 1000 --burst 0.25 --length 65536 --pinned 1048576 --connections 3'
	result numbers $?
	limit 0 tenant --rate 50M --length 64Ki --ops 1.5K && limit 0 -j &&
		jq -e 'map(.policy) == ["--rate 50000000 --ops 1500 --burst 0.1 --length 65536"]' \
			out >jq.log
	result units $?
	same '--connect 10.0.0.0/8:7471 --connect 10.0.0.1 --connect [fd00::/8]:1-5 --connect fd00::1'
	result peers $?
	same '--connect none --listen :7471 --listen 10.0.0.1:0'
	result places $?
	same '--no-listen --no-remote --no-atomics --no-raw --no-multicast'
	result operations $?
	same '--rate 1000 --burst 0'
	result no_burst $?
	limit 0 tenant/inner --ops 1 && limit 0 && grep -q '^tenant/inner .*--ops 1 ' out &&
		[ "$(wc -l <out)" = 3 ] && limit 0 /sys/fs/cgroup/tenant/inner --remove
	result below $?
	limit 0 tenant --remove && limit 2 tenant --remove && says 'has no policy'
	result removed $?
	printf '%s\n' '# policies' '' 'gone --rate 1M' 'tenant	--rate 1M # so much' >file
	limit 0 --from file && says 'gone: No such file' && limit 0 &&
		grep -q '^tenant .*--rate 1000000 ' out
	result from_a_file $?
	printf '%s\n' 'tenant --rate 2M' 'tenant --rate fast' >file
	limit 2 --from file && says 'fast: not a number' && says 'file: line 2'
	result wrong_file $?
	limit 2 /proc --rate 1 && says 'not a directory of a cgroup'
	result no_cgroup $?
	limit 2 tenant/none --rate 1 && says 'No such file'
	result no_directory $?
	as='setpriv --reuid=1000 --clear-groups'
	limit 2 tenant --rate 1 && says 'needs root' && limit 2 && says 'needs root'
	result not_root $?
	as=''
	rdma-post stat >out 2>err && grep -q '^tenant ' out
	result stat $?
	rdma-post stat --prometheus >out 2>err &&
		grep -q '^rdma_post_cgroup_operations_total{cgroup="tenant"} 0$' out
	result prometheus $?
	rdma-post stat -j >out 2>err && jq -e '.samples[0].cgroups[0].cgroup == "tenant"' out >jq.log
	result stat_json $?
	limit 0 tenant --remove
	result removed_at_last $?
}

# under OPTION... -- PROGRAM...: run it under a policy; the status is its own
under() { rdma-post run "$@" >out 2>err; }

# until_true COMMAND...: wait until it succeeds, for 60 seconds
until_true() {
	end=$(($(date +%s) + 60))
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.1
	done
}

listens() { grep -qs "^rpost-connection:.* state=listen .*src=[^ ]*:7472" /proc/[0-9]*/fdinfo/*; }

server() {
	hello >server.out 2>&1 &
	server=$!
	until_true listens
}

run_tests() {
	server && under --connect 10.0.0.1:7472 --no-listen -- hello 10.0.0.1 &&
		grep -q 'hello, client' out && wait && grep -q 'hello, server' server.out
	result run $?
	server
	! under --connect 10.0.0.2 -- hello 10.0.0.1 && says 'not permitted'
	result run_elsewhere $?
	kill "$server"
	wait
	! under --no-listen -- hello && says 'not permitted'
	result run_no_listen $?
	! under --no-raw -- sh -c ': <>/dev/rdma_post' && says 'denied'
	result run_opens_no_node $?
	! under --no-raw -- sh -c ': <>/proc/1/root/dev/rdma_post' && says 'denied'
	result run_opens_no_node_of_others $?
	# The way of open(2) that is neither for reading nor for writing
	! under --no-raw -- open_mode 3 /dev/rdma_post && says 'denied' &&
		! open_mode 3 /dev/rdma_post && open_mode 2 /dev/rdma_post
	result run_opens_no_node_in_a_third_way $?
	under --no-raw -- sh -c '! mknod /tmp/node c 10 1' && [ ! -e /tmp/node ]
	result run_makes_no_node $?
	mkdir -p /mnt
	! under --no-raw -- mount -t tmpfs none /mnt && mount -t tmpfs none /mnt && umount /mnt
	result run_mounts_nothing $?
	mkdir -p /dev/infiniband && : >/dev/infiniband/file
	! under --no-raw -- sh -c ': </dev/infiniband/file' && says 'denied'
	result run_no_infiniband $?
	under --no-raw -- sh -c 'echo x >/tmp/file && mv /tmp/file /root/file && cat /root/file \
		>/dev/null && grep -q "^NoNewPrivs:.*1" /proc/self/status'
	result run_all_else $?
	under --rate 1 -- sh -c 'exit 7'
	[ $? = 7 ]
	result run_status $?
	under --rate 1
	[ $? = 125 ] && says 'no program'
	result run_no_program $?
	under -- true
	[ $? = 125 ] && says 'no options'
	result run_no_options $?
	under --rate 0 -- true
	[ $? = 125 ] && says '0: not a number'
	result run_wrong $?
	# Narrower within narrower: the inner one cannot open the node.
	under --rate 1M -- rdma-post run --rate 1M -- true
	[ $? = 125 ] && says 'denied'
	result run_in_run $?
	server && RDMA_POST_DEBUG=1 RDMA_POST_FD=1 hello 10.0.0.1 >out 2>err
	says 'RDMA_POST_FD' && hello 10.0.0.1 >out 2>err && wait
	result wrong_descriptor $?
}

# Without privileges, and as root
plain() {
	setpriv --reuid=1000 --regid=1000 --clear-groups rdma-post run "$@" >out 2>err
}

plain_tests() {
	chmod 666 /dev/rdma_post
	server && plain --connect 10.0.0.1:7472 --no-listen -- hello 10.0.0.1 &&
		grep -q 'hello, client' out && wait
	result run_plain $?
	! plain --no-raw -- sh -c ': <>/dev/rdma_post' && says 'denied'
	result run_plain_opens_no_node $?
	! plain --no-raw -- open_mode 3 /dev/rdma_post && says 'denied'
	result run_plain_opens_no_node_in_a_third_way $?
}

cgroup_tests
run_tests
plain_tests
echo "1..$n"
exit $failed
