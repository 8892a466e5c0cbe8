#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: examples.sh OURS SYSTEM PROJECTS ADDRESS
#
# Runs the examples, servers and clients on this host: first the programs in the
# directory SYSTEM, linked with the system's librdmacm, then the programs in OURS, the
# same sources linked with librdma_post. Prints TAP: an example passes if all end with
# status 0 and print what they should. Last, runs over librdma_post alone: an ordinary
# user's, the worker in a sandbox, Python's, and those of PROJECTS (projects.sh).

# Functions are called by name.
# shellcheck disable=SC2317

ours=$1 system=$2 projects=$3 address=$4
tmp=$(mktemp -d) || exit 1
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT
subject=examples
# shellcheck source=../lib/tap.sh
. ./tap.sh
evidence() { cat "$tmp"/*; }

client() { "$@" "$address" >"$out.client" 2>&1; }

# both OUT COMMAND...: run a server, and a client that retries until the server
# listens
both() {
	out=$1
	shift
	"$@" >"$out.server" 2>&1 &
	server=$!
	while_runs $server client "$@" || { kill $server 2>/dev/null; return 1; }
	wait $server
}

report() {
	result "$2" "$1"
	rm -f "$tmp"/*
}

# start OUT PORT COMMAND...: start a server, and wait until it listens
start() {
	out=$1 port=$2
	shift 2
	"$@" >"$out.server" 2>&1 &
	server=$!
	while_runs $server listens "$port"
}

# together OUT COUNT COMMAND...: run so many clients at a time, and wait for them and
# for the server
together() {
	out=$1 i=0 clients='' status=0
	count=$2
	shift 2
	while [ $i -lt "$count" ]; do
		i=$((i + 1))
		timeout 300 "$@" >"$out.client$i" 2>&1 &
		clients="$clients $!"
	done
	for client in $clients; do
		wait "$client" || status=1
	done
	[ $status = 0 ] || kill $server
	wait $server && return $status
}

# lines DIRECTORY OUT SERVER COUNT: that many clients send 60 lines each
lines() {
	start "$2" 7474 timeout 300 "$1/$3" "$4" &&
		together "$2" "$4" "$1/lines_client" "$address" 60 &&
		[ "$(cat "$2".client*)" = "$(yes '60 lines answered' | head -n "$4")" ] &&
		[ "$(grep -c 'gone after 60 lines' "$2.server")" = "$4" ]
}

# have_connected COUNT OUT: so many clients say so; their files may come late
have_connected() { [ "$(cat "$2".client* | grep -c 'connected, 0 lines')" = "$1" ]; }

# restart DIRECTORY OUT COUNT: so many clients go on when their server is killed, and
# another one is started
restart() {
	start "$2" 7474 "$1/event_server" "$3" || return
	clients='' i=0
	while [ $i -lt "$3" ]; do
		i=$((i + 1))
		timeout 300 "$1/reconnect_client" "$address" 100 30 >"$2.client$i" 2>&1 &
		clients="$clients $!"
	done
	while_runs $server have_connected "$3" "$2" || return
	kill -9 $server
	wait $server
	start "$2" 7474 timeout 300 "$1/event_server" "$3" || return
	status=0
	for client in $clients; do
		wait "$client" || status=1
	done
	[ $status = 0 ] || kill $server
	wait $server && [ $status = 0 ] &&
		[ "$(cat "$2".client* | grep -c '^connected')" = $((2 * $3)) ] &&
		[ "$(cat "$2".client* | grep -c '^100 lines answered')" = "$3" ]
}

# kv DIRECTORY OUT [-s]: three load generators, which check values and versions; with -s
# they must have met torn reads
kv() {
	start "$2" 7475 timeout 300 "$1/kv_server" ${3+"$3"} 3 &&
		together "$2" 3 "$1/kv_load" "$address" 300 20 || return
	awk '/torn/ { torn += $1 } /GETs|PUTs/ { done += $1 }
		END { exit done != 900 || !(torn || slow != "-s") }' slow="${3-}" "$2".client*
}

# requests DIRECTORY OUT
requests() {
	start "$2" 7476 timeout 300 "$1/requests" && together "$2" 1 "$1/requests" "$address" 500 &&
		grep -q '^500 requests, [0-9]* in a second$' "$2.client1" &&
		grep -qx '500 requests answered' "$2.server"
}

# wrong DIRECTORY OUT: arguments that cannot be right, each with a line that says why
wrong() {
	for program in hello pingpong_sync tour lines_client; do
		"$1/$program" no.such.name >>"$2.names" 2>&1
		[ $? = 1 ] || return
	done
	[ "$(grep -cE 'Name or service not known|Temporary failure in name' \
		"$2.names")" = 4 ] || return
	for arguments in 'pingpong_sync -n x' 'pingpong_sync -s 0' 'pingpong_sync -x' \
		'event_server x' 'srq_server x' 'kv_server -s x' kv_load 'kv_load server x' \
		'lines_client server x' reconnect_client 'requests server x' sandbox; do
		# shellcheck disable=SC2086
		"$1/"$arguments >"$2.usage" 2>&1
		[ $? = 2 ] && grep -qE '^usage: |^not a number: x$|invalid option' "$2.usage" ||
			return
	done
}

# hellos OUT SERVER CLIENT: words are commands
hellos() {
	# shellcheck disable=SC2086
	start "$1" 7472 timeout 300 $2 && together "$1" 1 $3 "$address" &&
		[ "$(cat "$1.server" "$1.client1")" = "hello, server
hello, client" ]
}

# Transfer a file by COMMAND, which gets the client's command as its argument.
transfer() {
	"$ours/file_server" -o "$tmp/arrived" >"$tmp/server" 2>&1 &
	server=$!
	while_runs $server grep -q listening "$tmp/server" || return
	"$@" "exec $ours/file_client -c 512 -d 1 $address $tmp/file"
	status=$?
	wait $server && [ $status = 0 ] && cmp "$tmp/arrived" "$tmp/file"
}

# People at a terminal see how far a transfer is; in a pipe only the result is printed.
file_transfer() {
	head -c 16000000 /dev/urandom >"$tmp/file"
	transfer sh -c >"$tmp/client" 2>&1 && ! grep -q "$(printf '\r')" "$tmp/client" &&
		[ "$(wc -l <"$tmp/client")" = 6 ] &&
		transfer script -e -q /dev/null -c >"$tmp/client" </dev/null &&
		grep -q "$(printf '\r')writing [0-9.]* of 16.0 MB, [0-9.]* MB/s, [0-9]* s left" \
			"$tmp/client" &&
		grep -q "$(printf '\r')reading back [0-9.]* of 16.0 MB, " "$tmp/client"
	status=$?
	rm "$tmp/file" "$tmp/arrived"
	return $status
}

echo "TAP version 13"
echo "1..20"
for program in hello pingpong_sync tour; do
	both "$tmp/system" "$system/$program" &&
		both "$tmp/ours" "$ours/$program" &&
		cmp "$tmp/system.server" "$tmp/ours.server" &&
		cmp "$tmp/system.client" "$tmp/ours.client" &&
		[ -s "$tmp/ours.client" ]
	report $? $program
done
for program in event_server srq_server; do
	lines "$system" "$tmp/system" $program 6 && lines "$ours" "$tmp/ours" $program 6
	report $? $program
done
restart "$system" "$tmp/system" 6 && restart "$ours" "$tmp/ours" 6
report $? reconnect_client
for slow in '' -s; do
	kv "$system" "$tmp/system" $slow && kv "$ours" "$tmp/ours" $slow
	report $? key_value$slow
done
wrong "$system" "$tmp/system" && wrong "$ours" "$tmp/ours"
report $? wrong_arguments
requests "$system" "$tmp/system" && requests "$ours" "$tmp/ours"
report $? requests
as_user='setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs'
# shellcheck disable=SC2086
both "$tmp/user" $as_user "$ours/hello"
report $? ordinary_user
# Its worker needs an import, which rxe's own provider does not have.
# shellcheck disable=SC2086
both "$tmp/user" $as_user "$ours/sandbox" "$ours/sandbox_worker" &&
	grep -qx 'worker: hello, first' "$tmp/user.client" &&
	grep -qx 'worker: hello, second' "$tmp/user.server"
report $? sandbox
# shellcheck disable=SC2086
both "$tmp/any" $as_user "$ours/any_memory" &&
	[ "$(cat "$tmp/any.server" "$tmp/any.client")" = "a report by the client, 100000 bytes
a receive into a constant: Bad address
thanks" ]
report $? any_memory
python="/usr/bin/python3 -S $ours/hello.py"
hellos "$tmp/server" "$python" "$ours/hello" && hellos "$tmp/client" "$ours/hello" "$python"
report $? hello.py
# shellcheck disable=SC2086
! $python nowhere.invalid 2>"$tmp/python" && grep -q 'rdma_getaddrinfo: .*[a-z]' "$tmp/python" &&
	! grep -q 'error -' "$tmp/python" && ! $python a b 2>"$tmp/python" &&
	grep -qx 'usage: hello.py \[SERVER\]' "$tmp/python"
report $? hello.py_wrong_arguments
for kind in hello hello_static; do
	for project in cmake pkg_config; do
		hellos "$tmp/$project" "$ours/hello" "$projects/${project}_$kind"
		report $? ${project}_$kind
	done
done
file_transfer
report $? file_transfer
exit $failed
