#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: serve.sh ADDR [COMMAND [ARGS]]
#
# The far end of other hosts' measurements: bench serve, over the system's libraries
# at PORT and over librdma_post at PORT + 1. With a command: for as long as that
# runs, and exits as it does. Fails if one of the servers does not come up or has
# not lived until the end. In the environment:
#
#   BENCH   the program bench    RUN     rdma-post-run    PORT    18515 by default

addr=$1 port=${PORT:-18515}
shift
dir=$(mktemp -d) || exit 1
pids=
# They may take their time to destroy what there is.
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
