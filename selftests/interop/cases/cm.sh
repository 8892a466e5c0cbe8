# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2034,SC2154
# The programs of rdmacm-utils.

case_ rdma_client_server rdma_client/rdma_server "send and receive" smoke
rdma_client_server() {
	serve "$port" rdma_server -s "$addr" -p "$port"
	run rdma_client -s "$addr" -p "$port"
	ends
	says client '^rdma_client: end 0'
	says server '^rdma_server: end 0'
}

case_ rdma_xclient_server rdma_xclient/rdma_xserver "a message by a reliable connection"
rdma_xclient_server() {
	serve "$port" rdma_xserver -p "$port" -c r
	run rdma_xclient -s "$addr" -p "$port" -c r
	ends
	says client '^rdma_xclient: end 0'
	says server '^rdma_xserver: end 0'
}

# rping_sized SIZE COUNT
rping_sized() {
	serve "$port" rping -s -a "$addr" -p "$port" -v -V -S "$1" -C "$2"
	run rping -c -a "$addr" -p "$port" -v -V -S "$1" -C "$2"
	ends
	lines server '^server ping data: rdma-ping-[0-9]+:' "$2"
	lines client '^ping data: rdma-ping-[0-9]+:' "$2"
	says_not client 'mismatch|error|failed'
}

case_ rping_64 rping "-V, 64 bytes" smoke
rping_64() { rping_sized 64 20; }
case_ rping_4096 rping "-V, 4096 bytes"
rping_4096() { rping_sized 4096 20; }
case_ rping_65000 rping "-V, 65000 bytes"
rping_65000() { rping_sized 65000 5; }

# The server confuses simultaneous requests, so each client starts when the one
# before it is connected.
case_ rping_many rping "-P, six clients connected at once"
rping_many() {
	local i
	serve "$port" rping -s -P -a "$addr" -p "$port" -S 1000
	for i in 1 2 3 4 5 6; do
		start "client$i" rping -c -a "$addr" -p "$port" -v -V -C 200 -S 1000
		written "client$i"
	done
	for i in 1 2 3 4 5 6; do
		ends "client$i"
		lines "client$i" '^ping data: rdma-ping-[0-9]+:' 200
		says_not "client$i" 'mismatch|error|failed'
	done
	stop
}

case_ rping_in_turn rping "-P, clients in turn, one of them killed"
rping_in_turn() {
	serve "$port" rping -s -P -a "$addr" -p "$port"
	run rping -c -a "$addr" -p "$port" -V -C 3
	start killed rping -c -a "$addr" -p "$port" -v -V
	written killed
	stop killed
	run rping -c -a "$addr" -p "$port" -v -V -C 3
	lines client '^ping data: rdma-ping-[0-9]+:' 3
	stop
}

case_ rping_own_qp rping "-q, a queue pair of its own"
rping_own_qp() {
	serve "$port" rping -s -q -a "$addr" -p "$port" -v -V -C 5
	run rping -c -q -a "$addr" -p "$port" -v -V -C 5
	ends
	lines client '^ping data: rdma-ping-[0-9]+:' 5
	says_not client 'mismatch|error|failed'
}

case_ rping_ipv6 rping "IPv6"
rping_ipv6() {
	serve "$port" rping -s -a "$addr6" -p "$port" -v -V -C 5
	run rping -c -a "$addr6" -p "$port" -v -V -C 5
	ends
	lines client '^ping data: rdma-ping-[0-9]+:' 5
}

# Over the system's library the trace must have the files that it must not have
# over
# librdma_post: so the pattern is right.
case_ rping_opens rping "opens nothing of uverbs, sysfs or providers" smoke
rping_opens() {
	local others='/dev/infiniband|/sys/|libibverbs\.d|rxe-rdmav'
	serve "$port" strace -f -e trace=open,openat -o "$tmp/trace" \
		rping -s -a "$addr" -p "$port" -C 2
	run rping -c -a "$addr" -p "$port" -C 2
	ends
	if [ "$library" = system ]; then
		says trace "$others"
	else
		says trace '"/dev/rdma_post"'
		says_not trace "$others"
	fi
}

# ucmatose_both ARGS...
ucmatose_both() {
	serve 7471 ucmatose -b "$addr" "$@"
	run ucmatose -s "$addr" "$@"
	ends
	says client '^test complete'
	says client '^return status 0'
	says server '^return status 0'
}

case_ ucmatose_four ucmatose "four connections, ten messages" smoke
ucmatose_four() { ucmatose_both -c 4 -C 10 -S 1000; }
case_ ucmatose_migrate ucmatose "-m, ids migrate to another channel"
ucmatose_migrate() { ucmatose_both -m -c 2 -C 5; }
case_ ucmatose_large ucmatose "one message of 1 MiB"
ucmatose_large() { ucmatose_both -c 1 -C 1 -S 1048576; }
case_ ucmatose_idle ucmatose "connections only, -t -a"
ucmatose_idle() { ucmatose_both -c 16 -C 0 -t 32 -a 18; }

case_ cmtime cmtime "20 connections" smoke
cmtime() {
	case $release in
	bookworm)
		serve "$port" cmtime -b "$addr" -p "$port" -c 20
		run cmtime -s "$addr" -p "$port" -c 20
		stop
		says client '^connect'
		says client '^destroy'
		;;
	trixie) cmtime_synced "-b $addr" "-s $addr" ;;
	*) cmtime_synced "-b $addr -C $addr -L" "-b $addr -C $addr" ;;
	esac
}

# cmtime_synced "SERVER'S ARGS" "CLIENT'S ARGS": the ends meet by TCP, too.  At last
# they connect without queue pairs, with numbers that they count from -q, and which
# must differ, since both ends are on one device.
cmtime_synced() {
	local ready=listening_tcp
	# shellcheck disable=SC2086
	serve "$port" cmtime $1 -p "$port" -c 20 -q 3000
	# shellcheck disable=SC2086
	run cmtime $2 -p "$port" -c 20 -q 2000
	ends
	lines client '^cm connect +[1-9]' 2
	lines client '^destroy id +[1-9]' 2
	lines server '^cm connect +[1-9]' 2
}

only_in trixie
case_ cmtime_first cmtime "20 connections, stopped before those without queue pairs"
cmtime_first() {
	local ready=listening_tcp end
	serve "$port" stdbuf -oL cmtime -b "$addr" -p "$port" -c 20 -q 3000
	start client stdbuf -oL cmtime -s "$addr" -p "$port" -c 20 -q 2000
	for end in client server; do
		written "$end" '^destroy qp +[1-9]'
		says "$end" '^qp_conn +20'
		says "$end" '^cm connect +[1-9]'
		kill_one "$tmp/.pid.$end"
	done
}

# With three processes it does not connect without queue pairs.
only_in sid
case_ cmtime_three cmtime "-P 3, two clients with 20 connections each"
cmtime_three() {
	local ready=listening_tcp args="-b $addr -C $addr -p $port -P 3 -c 20"
	# shellcheck disable=SC2086
	serve "$port" cmtime $args -L
	# shellcheck disable=SC2086
	start second cmtime $args
	# shellcheck disable=SC2086
	run cmtime $args
	ends second
	ends
	says client '^qp_conn +20'
	says second '^qp_conn +20'
	says server '^qp_conn +40'
}

only_in "$release"
case_ udaddy udaddy "four paths, ten messages" smoke
udaddy() {
	serve 7174 udaddy -b "$addr" -c 4 -C 10 -S 1000
	run udaddy -s "$addr" -c 4 -C 10 -S 1000
	ends
	says client '^return status 0'
	says server '^return status 0'
}

case_ mckey mckey "ten messages to a group"
mckey() {
	# The receiver must join before the messages are sent.
	start server stdbuf -oL mckey -m 239.1.2.3 -b "$addr" -C 10
	written server 'joined dgid'
	run mckey -m 239.1.2.3 -b "$addr" -s -C 10
	ends
	says server '^return status 0'
	says client '^return status 0'
}

case_ mckey_join mckey "joins and leaves"
mckey_join() {
	run mckey -m 239.1.2.3 -b "$addr" -s -C 0
	says client 'joined dgid'
	says client '^return status 0'
}
