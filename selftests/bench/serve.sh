#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: serve.sh ADDR [COMMAND [ARGS]]
#
# Serves measurements of other hosts by "bench serve", over the system's
# libraries at PORT and over librdma_post at PORT + 1. With a command, serves
# while that runs and exits with its status. Fails if a server does not start,
# or ends too soon. The environment:
#
#   BENCH   the program bench    RUN    rdma-post-run    PORT    18515 by default

addr=$1 port=${PORT:-18515}
shift
dir=$(mktemp -d) || exit 1
pids=
# The servers may take some time to destroy their connections.
trap 'kill $pids 2>/dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# begin COLUMN PORT COMMAND...
begin() {
	column=$1
	shift
	at=$1
	shift
	"$@" serve "addr=$addr" "port=$at" >"$dir/$column" </dev/null &
	pids="$pids $!"
	until grep -qs listening "$dir/$column"; do
		kill -0 $! 2>/dev/null ||
			{ echo "serve.sh: $column: no server" >&2; exit 1; }
		sleep 0.1
	done
	echo "$column: $(cat "$dir/$column")"
}

begin system "$port" "$BENCH"
begin ours "$((port + 1))" "$RUN" "$BENCH"

if [ $# -gt 0 ]; then
	status=0
	"$@" || status=$?
else
	# shellcheck disable=SC2086
	for pid in $pids; do
		wait "$pid"
	done
	status=1
fi
for pid in $pids; do
	if ! kill -0 "$pid" 2>/dev/null; then
		echo "serve.sh: a server has ended" >&2
		[ "$status" != 0 ] || status=1
	fi
done
exit "$status"
