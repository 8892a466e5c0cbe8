# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2034,SC2154
# perftest and qperf.

# perftest PROGRAM SIZE ARGS...
perftest() {
	local program=$1 size=$2 args
	shift 2
	args="-d $dev -p $port -n 20 -F"
	[ "$size" = 8 ] || args="$args -s $size"
	# shellcheck disable=SC2086
	serve "$port" "$program" $args "$@"
	# shellcheck disable=SC2086
	run "$program" $args "$@" "$addr"
	ends
	says client "^ $size +[0-9]+ +[0-9.]+ +[0-9.]+"
	says_not client 'rror|ailed'
}

perftest_cm() { perftest "$@" -R; }

case_ send_bw_cm ib_send_bw "-R, by the connection manager" smoke
send_bw_cm() { perftest_cm ib_send_bw 4096; }
case_ send_lat_cm ib_send_lat "-R"
send_lat_cm() { perftest_cm ib_send_lat 64; }
case_ write_bw_cm ib_write_bw "-R" smoke
write_bw_cm() { perftest_cm ib_write_bw 16384; }
case_ write_lat_cm ib_write_lat "-R"
write_lat_cm() { perftest_cm ib_write_lat 64; }
case_ read_bw_cm ib_read_bw "-R" smoke
read_bw_cm() { perftest_cm ib_read_bw 16384; }
case_ read_lat_cm ib_read_lat "-R"
read_lat_cm() { perftest_cm ib_read_lat 64; }
case_ atomic_bw_cm ib_atomic_bw "-R, fetch and add"
atomic_bw_cm() { perftest_cm ib_atomic_bw 8; }
case_ atomic_lat_cm ib_atomic_lat "-R, compare and swap"
atomic_lat_cm() { perftest_cm ib_atomic_lat 8 -A CMP_AND_SWAP; }
case_ send_bw_cm_events ib_send_bw "-R -e, sleeping"
send_bw_cm_events() { perftest_cm ib_send_bw 1024 -e; }
case_ write_bw_cm_both ib_write_bw "-R -b -q 4, both ways, four queue pairs"
write_bw_cm_both() { perftest_cm ib_write_bw 1024 -b -q 4; }
case_ send_lat_cm_ud ib_send_lat "-R, datagrams"
send_lat_cm_ud() { perftest_cm ib_send_lat 64 -c UD; }

case_ send_bw ib_send_bw "addresses exchanged by TCP" smoke
send_bw() { perftest ib_send_bw 4096 -x 1; }
case_ send_bw_ud ib_send_bw "datagrams"
send_bw_ud() { perftest ib_send_bw 1024 -x 1 -c UD; }
case_ send_bw_uc ib_send_bw "unreliable connection"
send_bw_uc() { perftest ib_send_bw 1024 -x 1 -c UC; }
case_ send_bw_srq ib_send_bw "--use-srq, four queue pairs"
send_bw_srq() { perftest ib_send_bw 1024 -x 1 --use-srq -q 4; }
case_ send_lat ib_send_lat "addresses exchanged by TCP"
send_lat() { perftest ib_send_lat 64 -x 1; }
case_ write_bw ib_write_bw "addresses exchanged by TCP" smoke
write_bw() { perftest ib_write_bw 16384 -x 1; }
case_ write_lat ib_write_lat "addresses exchanged by TCP"
write_lat() { perftest ib_write_lat 64 -x 1; }
case_ read_bw ib_read_bw "addresses exchanged by TCP"
read_bw() { perftest ib_read_bw 16384 -x 1; }
case_ read_lat ib_read_lat "addresses exchanged by TCP"
read_lat() { perftest ib_read_lat 64 -x 1; }
case_ atomic_bw ib_atomic_bw "addresses exchanged by TCP"
atomic_bw() { perftest ib_atomic_bw 8 -x 1; }
case_ atomic_lat ib_atomic_lat "addresses exchanged by TCP"
atomic_lat() { perftest ib_atomic_lat 8 -x 1; }

# The scripts of perftest start its programs, each on a processor.  This one waits a
# second between the ends, which is too short for a slow guest: so the client is started
# by a command that waits until the server listens.
case_ run_loopback run_perftest_loopback "ib_write_bw, an end on each processor"
run_loopback() {
	cat >"$tmp/.when_ready" <<-END
		#!/bin/sh
		case \$* in
		*localhost)
			until grep -q ":$(printf %04X "$port") 0*:0000 0A" /proc/net/tcp; do
				sleep 0.05
			done ;;
		esac
		exec "\$@"
	END
	chmod 755 "$tmp/.when_ready"
	run run_perftest_loopback 0 1 "$tmp/.when_ready" \
		ib_write_bw -d "$dev" -p "$port" -x 1 -n 20 -F -s 16384
	lines client '^ 16384 +[0-9]+ +[0-9.]+ +[0-9.]+' 2
	says_not client 'rror|ailed'
}

# listening_both PORT: on this and on the next one, by TCP
listening_both() { listening_tcp "$1" && listening_tcp $(($1 + 1)); }

# This script waits only for the program on the last device.
case_ run_multi run_perftest_multi_devices "ib_write_bw, two devices"
run_multi() {
	local ready=listening_both n=0 end
	two_devices
	set -- -d "$dev,rxe1" -c 0,1 -x 1,1 -C "ib_write_bw -n 20 -F -s 16384"
	serve 15000 run_perftest_multi_devices "$@"
	run run_perftest_multi_devices "$@" -r "$addr"
	ends
	while pgrep -x ib_write_bw >/dev/null; do
		n=$((n + 1))
		[ $n -lt $((limit * 20)) ] || fail "ib_write_bw does not end"
		sleep 0.05
	done
	for end in client server; do
		lines $end '^ 16384 +[0-9]+ +[0-9.]+ +[0-9.]+' 2
		says_not $end 'rror|ailed'
	done
}

# Add another device, rxe1, until the case ends.
two_devices() {
	trap 'kill_all; pkill -x ib_write_bw || :; rdma link del rxe1; ip link del dummy1' EXIT
	ip link add dummy1 mtu 4200 type dummy
	ip link set dummy1 up
	ip addr add 10.0.1.1/24 dev dummy1
	rdma link add rxe1 type rxe netdev dummy1
}

# qperf_run "ARGS" TEST...: a second for each test
qperf_run() {
	local args=$1 test
	shift
	serve "$port" qperf -lp "$port"
	# shellcheck disable=SC2086
	run qperf -lp "$port" "$addr" $args -t 1 "$@"
	for test; do
		says client "^$test:"
	done
	stop
}

for qperf_test in rc_bw rc_lat rc_bi_bw rc_rdma_write_bw rc_rdma_write_poll_lat \
	rc_rdma_read_lat ver_rc_compare_swap ver_rc_fetch_add; do
	case_ qperf_$qperf_test qperf "-cm1 $qperf_test"
	eval "qperf_$qperf_test() { qperf_run -cm1 $qperf_test; }"
done
case_ qperf_rc qperf "rc_lat, addresses exchanged by TCP"
qperf_rc() { qperf_run '' rc_lat; }
