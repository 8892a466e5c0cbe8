#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: guest.sh a|b|again [long]      in one of two guests, see wire.sh
#
# A serves; B sends and prints TAP.  With a line that begins with "host:", B
# requests an action of wire.sh on A's guest.

who=$1 long=${2-}
objects=/sys/kernel/debug/rdma_post/objects
mkdir -p logs
subject=wire logs=logs
# shellcheck source=../lib/tap.sh
. ./tap.sh

# harm [NETEM...]: apply netem to outgoing packets.  Both guests do so, so
# requests and answers suffer alike.
harm() {
	tc qdisc del dev eth0 root 2>/dev/null
	[ $# = 0 ] || tc qdisc replace dev eth0 root netem limit 10000 "$@"
}

# run NAME COMMAND...: run one test of B
run() {
	case ,${only:-$1}, in *,"$1",*) ;; *) return ;; esac
	check "$@" || return
	sed 's/^#* */# /' "logs/$1"
	kind "$1" >>survived
}

# kind TEST: print the fault of a test; "restarted" and "nothing_left" have none
kind() {
	case $1 in
	outage_*|broken) echo outage ;;
	paused_*) echo peer paused ;;
	nobody) echo unreachable ;;
	killed) echo "peer's machine killed" ;;
	loss_*|duplicate|reorder|delay|corrupt|everything)
		echo network with faults ;;
	esac
}

# Print the number of survived faults as lib/faults.h does.
tell_survived() {
	awk '
		!n[$0]++ { kinds[++m] = $0 }
		END {
			for (i = 1; i <= m; i++) {
				list = list sep kinds[i] ": " n[kinds[i]]
				sep = ", "
			}
			printf "# faults survived: %d%s\n", NR, NR ? " (" list ")" : ""
		}' survived
}

# True once no object of the programs that exited is left.
all_gone() { until_true 30 none_left || { cat $objects; return 1; }; }
none_left() { awk '$2 != 0 { exit 1 }' $objects; }

# Print a line for each selected test: its name, and the arguments of netem.
networks() {
	while read -r name netem; do
		case ,${only:-$name}, in *,"$name",*) echo "$name $netem" ;; esac
	done <<-END
		loss_1 loss 1%
		loss_5 loss 5%
		duplicate duplicate 20%
		reorder delay 5ms reorder 50% 50%
		delay delay 10ms
		corrupt corrupt 2%
		everything delay 2ms loss 2% duplicate 5% corrupt 1%
	END
}

each_network() {
	networks | while read -r name netem; do
		# shellcheck disable=SC2086
		harm $netem
		vm-sync "$name"
		# rxe sometimes reads wrong data while packets are reordered,
		# over the system's librdmacm, too.
		reads=
		[ "$name" != reorder ] || reads=no-reads
		# shellcheck disable=SC2086
		[ "$who" = a ] || ./wire send 10.0.1.1 100 $reads >"$name.log" 2>&1
		echo $? >"$name.status"
		vm-sync "$name"
		harm
	done
}

# begin NAME PATTERN ARGUMENT...: start wire, and wait until its output has
# PATTERN
begin() {
	log=$1.log pattern=$2
	shift 2
	./wire "$@" >"$log" 2>&1 &
	pid=$!
	while_runs $pid grep -qs "$pattern" "$log"
}

# Wait for the program that begin() started; print its output, return its
# status.
finish() {
	wait "$pid"
	status=$?
	cat "$log"
	return $status
}

# The first of two writes must complete while the second is in progress; on this
# link 8,000 bytes take 0.3 s.
told_each() {
	harm rate 200kbit
	./wire each 10.0.1.1 3
	status=$?
	harm
	return $status
}

# outage SECONDS: the network loses all packets for a time, during traffic
outage() {
	begin outage connected send 10.0.1.1 400
	tc qdisc replace dev eth0 root netem loss 100%
	sleep "$1"
	harm
	finish
}

# The network loses all packets until the connection breaks, which the program
# must learn in time; then a new connection must work.
broken() {
	begin broken traffic break 10.0.1.1 120
	tc qdisc replace dev eth0 root netem loss 100%
	# Not until its end, which waits for the answer to its disconnect
	# request.
	while_runs $pid grep -qs 'after the last success' "$log"
	harm
	finish && ./wire send 10.0.1.1 50
}

# host ACTION...: request an action of wire.sh, and do not wait for its end
host() { echo "host: $*" >/dev/hvc0; }

# paused SECONDS: the peer's machine pauses.  The socket between the guests
# keeps packets for it, so the connection survives.
paused() {
	begin paused connected send 10.0.1.1 400
	host pause "$1"
	# 80 % of the pause is enough, because the monitor stops the guest late.
	finish && awk -v pause="$1" '/^# longest between two successes/ {
		n = $6 } END { exit !(n >= 0.8 * pause) }' paused.log
}

# paused_and_lost SECONDS: the same while packets are lost, as a switch would
# do.  The connection breaks, and a new one works when the peer is back.
paused_and_lost() {
	begin paused traffic break 10.0.1.1 150
	# Before the pause, or the socket keeps some packets for the peer.
	tc qdisc replace dev eth0 root netem loss 100%
	host pause "$1"
	while_runs $pid grep -qs 'after the last success' paused.log
	harm
	finish && awk -v pause="$1" '/ s after the last success$/ {
		n = $(NF - 5); seen = 1
		} END { exit !(seen && n < pause) }' paused.log &&
		./wire send 10.0.1.1 50
}

# Connecting to a host that does not exist must fail.
nobody() { ! ./wire connect 10.0.1.99 10; }

# The peer's machine is killed; restarted() boots it again.
killed() {
	# The connection manager repeats the disconnect request to a dead peer for minutes: only
	# the long test waits for that.
	begin killed traffic "$([ -n "$long" ] && echo break || echo fail)" 10.0.1.1 200
	host kill
	finish
}

restarted() {
	host restart
	# The new server does not know the messages of the old one.
	rm -f acked
	./wire send 10.0.1.1 50
}

case $who in
a)
	./wire serve 10.0.1.1 >/dev/hvc0 2>&1 &
	each_network
	# A guest that is killed does not get here.
	vm-sync over
	;;
again)
	./wire serve 10.0.1.1 >/dev/hvc0 2>&1 &
	# pair.sh ends this guest when B has ended.
	sleep 600
	;;
b)
	echo "TAP version 13"
	: >survived
	each_network
	for name in $(networks | cut -d' ' -f1); do
		run "$name" sh -c "cat $name.log; exit $(cat "$name.status")"
	done
	run told_each told_each
	run outage_1s outage 1
	run broken broken
	run paused_2s paused 2
	if [ -n "$long" ]; then
		run paused_60s paused 60
		run paused_60s_and_lost paused_and_lost 60
		run nobody nobody
	fi
	run killed killed
	run restarted restarted
	run nothing_left all_gone
	tell_survived
	end_tap
	;;
esac
