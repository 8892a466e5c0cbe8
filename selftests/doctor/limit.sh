#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: limit.sh
#
# Tests rdma-post limit and rdma-post run: policies as the user writes and reads them, and
# programs that run under one. Prints TAP. Runs in a guest with rxe0 at 10.0.0.1, as root. In
# the working directory are bin/ with rdma-post and rdma-post-run, lib/, hello, jq, and
# tap.sh, and open_mode, which opens a file in the mode that it is given.

# Functions are called by name; jq's variables are not the shell's.
# shellcheck disable=SC2016,SC2317

PATH=$PWD/bin:$PWD:$PATH
export LD_LIBRARY_PATH=$PWD/lib
subject=limit
# shellcheck source=../lib/tap.sh
. ./tap.sh
: >out
: >err

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

# refused TEXT ARGUMENT...: rdma-post limit fails, and says the text
refused() {
	text=$1
	shift
	limit 2 "$@" && says "$text"
}

# lists FILTER: the list as JSON
lists() { limit 0 -j && jq -e "$1" out >jq.log; }

# same POLICY: a policy is listed as it was given
same() {
	# shellcheck disable=SC2086
	limit 0 tenant $1 && lists "map(.policy) == [\"$1\"] and map(.cgroup) == [\"tenant\"]"
}

# stat_has OPTION COMMAND...: what the command finds in the output of rdma-post stat
# shellcheck disable=SC2086
stat_has() { rdma-post stat $1 >out 2>err && shift && "$@" out >jq.log; }

cgroup_tests() {
	mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
	mkdir -p /sys/fs/cgroup/tenant/inner
	limit 0 && grep -q 'No cgroup has a policy' out
	result none $?
	test_ none_json lists '. == []'
	test_ numbers same \
		'--rate 50000000 --ops 1000 --burst 0.25 --length 65536 --pinned 1048576 --connections 3'
	limit 0 tenant --rate 50M --length 64Ki --ops 1.5K &&
		lists 'map(.policy) == ["--rate 50000000 --ops 1500 --burst 0.1 --length 65536"]'
	result units $?
	test_ peers same \
		'--connect 10.0.0.0/8:7471 --connect 10.0.0.1 --connect [fd00::/8]:1-5 --connect fd00::1'
	test_ places same '--connect none --listen :7471 --listen 10.0.0.1:0'
	test_ operations same '--no-listen --no-remote --no-atomics --no-raw --no-multicast'
	test_ no_burst same '--rate 1000 --burst 0'
	limit 0 tenant/inner --ops 1 && limit 0 && grep -q '^tenant/inner .*--ops 1 ' out &&
		[ "$(wc -l <out)" = 3 ] && limit 0 /sys/fs/cgroup/tenant/inner --remove
	result below $?
	limit 0 tenant --remove && refused 'has no policy' tenant --remove
	result removed $?
	printf '%s\n' '# policies' '' 'gone --rate 1M' 'tenant	--rate 1M # so much' >file
	limit 0 --from file && says 'gone: No such file' && limit 0 &&
		grep -q '^tenant .*--rate 1000000 ' out
	result from_a_file $?
	printf '%s\n' 'tenant --rate 2M' 'tenant --rate fast' >file
	refused 'fast: not a number' --from file && says 'file: line 2'
	result wrong_file $?
	test_ no_cgroup refused 'not a directory of a cgroup' /proc --rate 1
	test_ no_directory refused 'No such file' tenant/none --rate 1
	as='setpriv --reuid=1000 --clear-groups'
	refused 'needs root' tenant --rate 1 && refused 'needs root'
	result not_root $?
	as=''
	test_ stat stat_has '' grep '^tenant '
	test_ prometheus stat_has --prometheus \
		grep '^rdma_post_cgroup_operations_total{cgroup="tenant"} 0$'
	test_ stat_json stat_has -j jq -e '.samples[0].cgroups[0].cgroup == "tenant"'
	test_ removed_at_last limit 0 tenant --remove
}

# under OPTION... -- PROGRAM...: run it under a policy, by $as; the status is its own
# shellcheck disable=SC2086
under() { $as rdma-post run "$@" >out 2>err; }

# denied TEXT OPTION... -- PROGRAM...: it fails, and says the text
denied() {
	text=$1
	shift
	! under "$@" && says "$text"
}

# wrong TEXT OPTION... -- PROGRAM...: rdma-post run does not get as far as the program
wrong() {
	text=$1
	shift
	under "$@"
	[ $? = 125 ] && says "$text"
}

server() {
	hello >server.out 2>&1 &
	server=$!
	until_true 60 listens 7472
}

run_tests() {
	server && under --connect 10.0.0.1:7472 --no-listen -- hello 10.0.0.1 &&
		grep -q 'hello, client' out && wait && grep -q 'hello, server' server.out
	result run $?
	server
	test_ run_elsewhere denied 'not permitted' --connect 10.0.0.2 -- hello 10.0.0.1
	kill "$server"
	wait
	test_ run_no_listen denied 'not permitted' --no-listen -- hello
	test_ run_opens_no_node denied denied --no-raw -- sh -c ': <>/dev/rdma_post'
	test_ run_opens_no_node_of_others denied denied \
		--no-raw -- sh -c ': <>/proc/1/root/dev/rdma_post'
	# The way of open(2) that is neither for reading nor for writing
	denied denied --no-raw -- open_mode 3 /dev/rdma_post && ! open_mode 3 /dev/rdma_post &&
		open_mode 2 /dev/rdma_post
	result run_opens_no_node_in_a_third_way $?
	under --no-raw -- sh -c '! mknod /tmp/node c 10 1' && [ ! -e /tmp/node ]
	result run_makes_no_node $?
	mkdir -p /mnt
	! under --no-raw -- mount -t tmpfs none /mnt && mount -t tmpfs none /mnt && umount /mnt
	result run_mounts_nothing $?
	mkdir -p /dev/infiniband && : >/dev/infiniband/file
	test_ run_no_infiniband denied denied --no-raw -- sh -c ': </dev/infiniband/file'
	test_ run_all_else under --no-raw -- sh -c 'echo x >/tmp/file && mv /tmp/file /root/file &&
		cat /root/file >/dev/null && grep -q "^NoNewPrivs:.*1" /proc/self/status'
	under --rate 1 -- sh -c 'exit 7'
	[ $? = 7 ]
	result run_status $?
	test_ run_no_program wrong 'no program' --rate 1
	test_ run_no_options wrong 'no options' -- true
	test_ run_wrong wrong '0: not a number' --rate 0 -- true
	# Narrower within narrower: the inner one cannot open the node.
	test_ run_in_run wrong denied --rate 1M -- rdma-post run --rate 1M -- true
	server && RDMA_POST_DEBUG=1 RDMA_POST_FD=1 hello 10.0.0.1 >out 2>err
	says 'RDMA_POST_FD' && hello 10.0.0.1 >out 2>err && wait
	result wrong_descriptor $?
}

# Without privileges, and as root
plain_tests() {
	chmod 666 /dev/rdma_post
	as='setpriv --reuid=1000 --regid=1000 --clear-groups'
	server && under --connect 10.0.0.1:7472 --no-listen -- hello 10.0.0.1 &&
		grep -q 'hello, client' out && wait
	result run_plain $?
	test_ run_plain_opens_no_node denied denied --no-raw -- sh -c ': <>/dev/rdma_post'
	test_ run_plain_opens_no_node_in_a_third_way denied denied \
		--no-raw -- open_mode 3 /dev/rdma_post
}

cgroup_tests
run_tests
plain_tests
end_tap
