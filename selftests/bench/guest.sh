#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: guest.sh ROUNDS CASES RESULTS
#
# Measures each of the cases ROUNDS times: over the system's libraries, over
# librdma_post, and in the kernel if the module floor is loaded, one right after
# the other, in each round beginning with another one. Adds a line of JSON to
# RESULTS for each measurement; a failed one has an error instead of a result,
# and is not tried again. RESULTS.now names the current measurement. The
# environment:
#
#   BENCH   the program bench    RUN     rdma-post-run
#   ADDR    of the RDMA device   LIMIT   seconds for one measurement
#   PEER    the address of a host on which serve.sh runs, instead of ADDR; for
#           the cases with peer=self, ADDR is such a host, too
#   PORT    of the servers, 18515 by default

rounds=$1 cases=$2 results=$3 port=${PORT:-18515}
floor=/sys/module/floor/parameters/run
dir=$(mktemp -d) || exit 1
errors=$dir/errors
: >"$dir/failed"
trap 'rm -rf "$dir"' EXIT

# where PORT CASE...: print the arguments that name the host and the server
where() {
	at=$1
	shift
	case ${PEER-},$* in
	,*peer=self*) echo "addr=$ADDR peer=$ADDR port=$at" ;;
	,*) echo "addr=$ADDR" ;;
	*) echo "peer=$PEER port=$at" ;;
	esac
}

# Every program ends in time, unless it hangs in the kernel.
bounded() { timeout -k 5 "$LIMIT" "$@"; }

# measure COLUMN CASE...: print the figures
measure() {
	column=$1
	shift
	# shellcheck disable=SC2046
	case $column in
	s) bounded "$BENCH" "$@" $(where "$port" "$@") </dev/null ;;
	o) bounded "$RUN" "$BENCH" "$@" $(where $((port + 1)) "$@") </dev/null ;;
	f) echo "$* addr=$ADDR" | bounded tee "$floor" >/dev/null && cat "$floor" ;;
	esac
	status=$?
	# The status of timeout, or of the signal by which it ended the program.
	case $status in
	124 | 137 | 143) echo "no end after $LIMIT s" >&2 ;;
	esac
	return "$status"
}

# rotate COLUMNS N: print the columns, the N-th of them first
rotate() {
	columns=$1
	[ -e "$floor" ] || columns=${columns%f}
	n=$(($2 % ${#columns}))
	while [ "$n" -gt 0 ]; do
		rest=${columns#?}
		columns=$rest${columns%"$rest"}
		n=$((n - 1))
	done
	echo "$columns" | sed 's/./& /g'
}

name() {
	case $1 in
	s) echo system ;;
	o) echo ours ;;
	f) echo floor ;;
	esac
}

# Print the reason of a failure without the characters that JSON escapes.
reason() {
	tr '\n' ' ' <"$errors" | tr -d '"\\\000-\037' | cut -c 1-400 |
		sed 's, *$,,'
}

# one COLUMN CASE...: measure, and write a line with the uptime before and after
one() {
	column=$1
	shift
	! grep -qxF -- "$column $*" "$dir/failed" || return 0
	echo "$(name "$column"): $*" >"$results.now"
	read -r before _ </proc/uptime
	# Use a file, since processes that a killed program leaves would keep a
	# pipe open.
	if measure "$column" "$@" >"$dir/figures" 2>"$errors"; then
		figures=$(cat "$dir/figures")
	else
		echo "$column $*" >>"$dir/failed"
		[ -s "$errors" ] || echo "it says nothing" >"$errors"
		figures="null,\"error\":\"$(reason)\""
		echo "failed: $(name "$column"): $*: $(reason)"
	fi
	read -r after _ </proc/uptime
	printf '{"round":%s,"column":"%s","line":"%s","from":%s,"to":%s,"result":%s}\n' \
		"$round" "$(name "$column")" "$*" "$before" "$after" "$figures" >>"$results"
}

round=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1)) number=0
	while read -r columns line; do
		number=$((number + 1))
		for column in $(rotate "$columns" $((round + number))); do
			# shellcheck disable=SC2086
			one "$column" $line
		done
	done <"$cases"
	echo "round $round of $rounds"
done
rm -f "$results.now"
[ ! -s "$dir/failed" ]
