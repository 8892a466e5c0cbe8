#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: guest.sh a|b|again [long]      in one of two guests, see wire.sh
#
# A serves, B sends and prints TAP.  A line that begins with "host:" asks wire.sh
# to do something to A's guest.

who=$1 long=${2-}
objects=/sys/kernel/debug/rdma_post/objects
n=0

# On both sides: what leaves here, and the answers, are harmed alike.
harm() {
	tc qdisc del dev eth0 root 2>/dev/null
	[ $# = 0 ] || tc qdisc replace dev eth0 root netem limit 10000 "$@"
}

# test NAME COMMAND...: one test of B's
test_() {
	name=$1
	shift
	case ,${only:-$name}, in *,"$name",*) ;; *) return ;; esac
	n=$((n + 1))
	if "$@" >test.log 2>&1; then ok=ok; else ok='not ok'; fi
	sed 's/^#* */# /' test.log
	echo "$ok $n wire.$name"
	[ "$ok" != ok ] || kind "$name" >>survived
}

# The fault of a test.  To come back, and to leave nothing, are none.
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

# In the form of faults.h.
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

# Nothing is left of programs that are gone.
all_gone() {
	tries=0
	until awk '$2 != 0 { exit 1 }' $objects; do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || { cat $objects; return 1; }
		sleep 0.5
	done
}

# until PID, or for a while, PATTERN is in FILE
wait_for() {
	tries=0
	until grep -qs "$2" "$3"; do
		tries=$((tries + 1))
		[ $tries -lt 1200 ] && [ -n "$(readlink /proc/"$1"/exe)" ] || return 1
		sleep 0.1
	done
}

# Every line: the name of a test, and what netem does for it.
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
		# What rxe reads while packets change places is wrong at times, over
		# the system's librdmacm too.
		reads=
		[ "$name" != reorder ] || reads=no-reads
		# shellcheck disable=SC2086
		[ "$who" = a ] || ./wire send 10.0.1.1 100 $reads >"$name.log" 2>&1
		echo $? >"$name.status"
		vm-sync "$name"
		harm
	done
}

# begin NAME PATTERN ARGUMENT...: run wire until its output has PATTERN
begin() {
	log=$1.log
	pattern=$2
	shift 2
	./wire "$@" >"$log" 2>&1 &
	pid=$!
	wait_for $pid "$pattern" "$log"
}

# Wait for what has begun: its output and its status.
finish() {
	wait "$pid"
	status=$?
	cat "$log"
	return $status
}

# 8,000 bytes take a third of a second.
told_each() {
	harm rate 200kbit
	./wire each 10.0.1.1 3
	status=$?
	harm
	return $status
}

# The network loses all for so many seconds, while there is traffic.
outage() {
	begin outage connected send 10.0.1.1 400
	tc qdisc replace dev eth0 root netem loss 100%
	sleep "$1"
	harm
	finish
}

# The same until the connection breaks: told in time, and a new one works.
broken() {
	begin broken traffic break 10.0.1.1 120
	tc qdisc replace dev eth0 root netem loss 100%
	# It ends only when the disconnection has been answered, or given up.
	wait_for $pid 'after the last success' "$log"
	harm
	finish && ./wire send 10.0.1.1 50
}

# host ACTION...: ask wire.sh, and go on when it has begun.
host() { echo "host: $*" >/dev/hvc0; }

# The peer stands still for so many seconds.  The wire between guests holds back
# what it does not take, so that the connection outlives it.
paused() {
	begin paused connected send 10.0.1.1 400
	host pause "$1"
	# Nearly: the monitor takes its time to stop the guest.
	finish && awk -v pause="$1" '/^# longest between two successes/ {
		n = $6 } END { exit !(n >= 0.8 * pause) }' paused.log
}

# A switch would lose it: the connection breaks, and a new one comes about when
# the peer is back.
paused_and_lost() {
	begin paused traffic break 10.0.1.1 150
	# First, or the wire holds some until the peer is back.
	tc qdisc replace dev eth0 root netem loss 100%
	host pause "$1"
	wait_for $pid 'after the last success' paused.log
	harm
	finish && awk -v pause="$1" '/ s after the last success$/ {
		n = $(NF - 5); seen = 1
		} END { exit !(seen && n < pause) }' paused.log &&
		./wire send 10.0.1.1 50
}

# No such host.
nobody() { ! ./wire connect 10.0.1.99 10; }

# The peer's machine dies, and comes back.
killed() {
	# The connection manager asks a dead peer for minutes to disconnect.
	begin killed traffic \
		"$([ -n "$long" ] && echo break || echo fail)" 10.0.1.1 200
	host kill
	finish
}

restarted() {
	host restart
	# What the last server saw is gone with it.
	rm -f acked
	./wire send 10.0.1.1 50
}

case $who in
a)
	./wire serve 10.0.1.1 >/dev/hvc0 2>&1 &
	each_network
	# Whoever is killed does not come to here.
	vm-sync over
	;;
again)
	./wire serve 10.0.1.1 >/dev/hvc0 2>&1 &
	# Until wire.sh ends this guest.
	sleep 600
	;;
b)
	echo "TAP version 13"
	: >survived
	each_network
	for name in $(networks | cut -d' ' -f1); do
		test_ "$name" sh -c "cat $name.log; exit $(cat "$name.status")"
	done
	test_ told_each told_each
	test_ outage_1s outage 1
	test_ broken broken
	test_ paused_2s paused 2
	if [ -n "$long" ]; then
		test_ paused_60s paused 60
		test_ paused_60s_and_lost paused_and_lost 60
		test_ nobody nobody
	fi
	test_ killed killed
	test_ restarted restarted
	test_ nothing_left all_gone
	tell_survived
	echo "1..$n"
	;;
esac
