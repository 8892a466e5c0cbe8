# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
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

only_in bookworm

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
