#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: examples.sh OURS SYSTEM ADDRESS
#
# Runs the examples, server and client on this host: first the programs in the
# directory SYSTEM, linked with the system's librdmacm, then the programs in
# OURS, the same sources linked with librdma_post. Prints TAP: an example passes
# if both end with status 0 and print the same. Last, runs one over librdma_post
# as an ordinary user.

ours=$1 system=$2 address=$3
tmp=$(mktemp -d) || exit 1
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT
failed=0 n=0

# both OUT COMMAND...: run a server, and a client that retries until the server
# listens
both() {
	out=$1
	shift
	"$@" >"$out.server" 2>&1 &
	server=$!
	tries=0
	until "$@" "$address" >"$out.client" 2>&1; do
		tries=$((tries + 1))
		if [ $tries = 50 ] || ! kill -0 $server 2>/dev/null; then
			kill $server 2>/dev/null
			return 1
		fi
		sleep 0.1
	done
	wait $server
}

report() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n examples.$2"
	else
		failed=1
		sed 's/^/# /' "$tmp"/*
		echo "not ok $n examples.$2"
	fi
	rm -f "$tmp"/*
}

echo "TAP version 13"
echo "1..4"
for program in hello pingpong_sync tour; do
	both "$tmp/system" "$system/$program" &&
		both "$tmp/ours" "$ours/$program" &&
		cmp "$tmp/system.server" "$tmp/ours.server" &&
		cmp "$tmp/system.client" "$tmp/ours.client" &&
		[ -s "$tmp/ours.client" ]
	report $? $program
done
both "$tmp/user" setpriv --reuid=65534 --regid=65534 --clear-groups \
	--no-new-privs "$ours/hello"
report $? ordinary_user
exit $failed
