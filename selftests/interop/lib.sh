# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# The functions that cases use.  Sourced by run_cases.sh, which sets:
#
#   release  Debian's, of the programs
#   library  system or rdma_post      addr  an address of the RDMA device
#   tmp      for the case's files     dev   the device
#   port     of this case alone       keep  files that the cases keep
#   over     the command that runs a program over the library
#   tries    of this case before     all_pyverbs  not empty if all of its cases run
#
# A case is a function; it passes if no command in it fails ("set -e").

# case_ FUNCTION PROGRAM WHAT [MARKS]: declares a case.  Those marked "smoke"
# run on every kernel.  WHAT may have no "|".
case_() {
	case " $releases " in
	*" $release "*) ;;
	*) return 0 ;;
	esac
	printf '%s|%s|%s|%s\n' "$1" "$2" "$3" "${4-}" >>"$list"
}

# only_in RELEASE...: the following cases of the file are for these only
only_in() { releases=$*; }

fail() {
	echo "failed: $*" >"$tmp/.why"
	exit 1
}

# as_root: this case's programs run as root, without a limit of locked memory.
as_root() {
	over=${over#"$as_user "}
}

skip() {
	echo "$*" >"$tmp/.why"
	exit 4
}

listening_tcp() {
	grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6
}

# listening PORT: true if a program listens on it, by TCP or the RDMA CM
listening() {
	listening_tcp "$1" ||
		{ rdma resource show cm_id 2>/dev/null |
			grep 'state LISTEN' | grep -q ":$1 " && sleep 0.1; }
}

# start NAME COMMAND...: run it in the background, with its output in $tmp/NAME
start() {
	local name=$1
	shift
	# shellcheck disable=SC2086
	timeout -k 1 "$limit" $over "$@" </dev/null >"$tmp/$name" 2>&1 &
	echo $! >"$tmp/.pid.$name"
}

running() {
	local pid
	read -r pid <"$tmp/.pid.$1"
	kill -0 "$pid" 2>/dev/null
}

# serve PORT COMMAND...: start a server and wait until it listens, or until $ready
# says so.  If its output has $refusal, the device does not support the case.
serve() {
	local n=0 at=$1
	shift
	start server "$@"
	until ${ready:-listening} "$at"; do
		running server || refused || fail "the server ended before it listened"
		n=$((n + 1))
		[ $n -lt $((limit * 20)) ] || fail "the server does not listen on $at"
		sleep 0.05
	done
}

refused() {
	[ -z "${refusal-}" ] || ! grep -m 1 -- "$refusal" "$tmp/server" >"$tmp/.why" ||
		exit 4
	false
}

# run COMMAND...: run a client, with its output in $tmp/client.  Perftest's
# clients connect twice, the second time perhaps before the server listens
# again.  The server has then taken the first connection and cannot serve
# another client.
run() {
	local status=0
	# shellcheck disable=SC2086
	timeout -k 1 "$limit" $over "$@" </dev/null >"$tmp/client" 2>&1 || status=$?
	case $status in
	0) ;;
	124 | 137) fail "${1##*/} has not ended after $limit s" ;;
	*)
		! grep -q 'EVENT_REJECTED; error: 8' "$tmp/client" ||
			fail "${1##*/} came too early"
		fail "${1##*/} ended with status $status"
		;;
	esac
}

# ends [NAME]: wait for a background command, which must end with status 0
ends() {
	local pid status=0 name=${1:-server}
	read -r pid <"$tmp/.pid.$name"
	wait "$pid" || status=$?
	rm "$tmp/.pid.$name"
	case $status in
	0) ;;
	124 | 137) fail "the $name has not ended after $limit s" ;;
	*) fail "the $name ended with status $status" ;;
	esac
}

# written FILE [REGEX [NAME]]: wait until a background command has written a
# line that matches; by default it is the command whose output is FILE
written() {
	local n=0 name=${3-$1}
	until grep -qE -- "${2-.}" "$tmp/$1"; do
		n=$((n + 1))
		[ $n -lt $((limit * 20)) ] || fail "the $name writes nothing"
		running "$name" || grep -qE -- "${2-.}" "$tmp/$1" ||
			fail "the $name has ended early"
		sleep 0.05
	done
}

# stop [NAME]: end a background command, which must still be running
stop() {
	local name=${1:-server}
	running "$name" || fail "the $name has died"
	kill_one "$tmp/.pid.$name"
}

kill_one() {
	local pid
	read -r pid <"$1"
	rm "$1"
	kill "$pid" 2>/dev/null || return 0
	wait "$pid" 2>/dev/null || true
}

kill_all() {
	local pid
	for pid in "$tmp"/.pid.*; do
		[ ! -e "$pid" ] || kill_one "$pid"
	done
}

# says NAME REGEX: fail unless the output of "client", "server", ... has a match
says() {
	grep -qE -- "$2" "$tmp/$1" || fail "no /$2/ in the output of the $1"
}

says_not() {
	! grep -qE -- "$2" "$tmp/$1" || fail "/$2/ in the output of the $1"
}

# lines NAME REGEX NUMBER: fail unless the output has so many matching lines
lines() {
	local n
	n=$(grep -cE -- "$2" "$tmp/$1") || true
	[ "$n" = "$3" ] || fail "/$2/ is $n times, not $3, in the output of the $1"
}

# same_as_system NAME [REGEX]: fail unless the output is the same as over the
# system's libraries, whose cases run first; matching lines may differ
same_as_system() {
	local kept=$keep/$case.$1
	grep -vE -- "${2-^\$}" "$tmp/$1" >"$tmp/.same"
	if [ "$library" = system ]; then
		cp "$tmp/.same" "$kept"
	elif [ -e "$kept" ]; then
		diff "$kept" "$tmp/.same" >"$tmp/diff" ||
			fail "the output differs from that over the system's library"
	fi
}

# Print the number of packets that the device has sent.
packets() {
	rdma statistic show link "$dev/1" | sed -n 's/.*sent_pkts \([0-9]*\).*/\1/p'
}

# has_sent N BEFORE: fail unless the device has sent more than N packets since BEFORE
has_sent() { [ $(($(packets) - $2)) -gt "$1" ] || fail "it did not use the device"; }

# sends N BEFORE NAME: wait until the device has sent more than N packets since BEFORE,
# while the background command runs
sends() {
	local n=0
	until [ $(($(packets) - $2)) -gt "$1" ]; do
		n=$((n + 1))
		running "$3" || fail "it did not use the device"
		[ $n -lt $((limit * 20)) ] || fail "it did not use the device"
		sleep 0.05
	done
}

port_down_and_up() {
	ip link set dummy0 down
	ip link set dummy0 up
	ip addr replace fd00::1/64 dev dummy0 nodad
}
