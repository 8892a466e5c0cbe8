# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# uDAPL, by its providers of the connection manager (cma) and of sockets (scm).

only_in bookworm sid

# dapl_serve READY PROGRAM ARGS...: start a server and wait until it says READY.
dapl_serve() {
	local ready=$1
	shift
	export DAT_OVERRIDE=$tmp/.dat.conf
	printf '%s u2.0 nonthreadsafe default libdaplo%s.so.2 dapl.2.0 "%s" ""\n' \
		cma fa 'dummy0 0' scm scm "$dev 1" >"$DAT_OVERRIDE"
	chmod 644 "$DAT_OVERRIDE"
	start server stdbuf -oL "$@"
	written server "$ready"
}

# dtest_both PROGRAM PASS PROVIDER ARGS...: both ends say PASS
dtest_both() {
	local program=$1 pass=$2 provider=$3
	shift 3
	dapl_serve 'waiting for client|[Ss]erver ready' "$program" -P "$provider" "$@"
	run stdbuf -oL "$program" -P "$provider" -h "$addr" "$@"
	ends
	says client "$pass"
	says server "$pass"
	says_not client 'FAIL|ERR'
}

case_ dtest_cma dtest "provider cma: send, write, read, atomics" smoke
dtest_cma() { dtest_both dtest PASSED cma -b 4096; }
case_ dtest_scm dtest "provider scm"
dtest_scm() { dtest_both dtest PASSED scm -b 4096; }
case_ dtest_polled dtest "provider cma, polled, 16 KiB"
dtest_polled() { dtest_both dtest PASSED cma -p -b 16384; }
case_ dtestcm_cma dtestcm "provider cma, 20 connections"
dtestcm_cma() { dtest_both dtestcm 'ALL 20 CONNECTED' cma -c 20; }
# In the end dtestsrq waits for IBV_EVENT_QP_LAST_WQE_REACHED, which rxe of 6.1 does
# not report over either library.
case_ dtestsrq_cma dtestsrq "provider cma, a shared receive queue, but for the last event"
dtestsrq_cma() {
	local end
	dapl_serve 'server ready' dtestsrq -v -P cma
	start client stdbuf -oL dtestsrq -v -P cma -h "$addr"
	for end in client server; do
		written "$end" 'Wait for EP async event'
		says "$end" 'incoming data: .*msg num 3'
		says_not "$end" 'FAIL|ERR'
		kill_one "$tmp/.pid.$end"
	done
}

case_ dapltest_transactions dapltest \
	"provider cma: two threads, send, read, write, data compared"
dapltest_transactions() {
	dapl_serve 'Service Point Ready' dapltest -T S -D cma
	run dapltest -T T -s "$addr" -D cma -i 20 -t 2 -w 2 -V \
		client SR 256 server SR 256 client RW 4096 server SR 256 \
		client RR 4096 server SR 256 client SR 1024 2 server SR 1024 2
	says client 'Total|pass'
	says_not client 'FAIL|rror|mismatch'
	run dapltest -T Q -s "$addr" -D cma
	ends
}
