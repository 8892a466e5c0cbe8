#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: guest.sh ROUNDS CASES RESULTS
#
# Measures each of the cases so many times: over the system's libraries, over
# librdma_post, and in the kernel if the module floor is there, one right after
# the other, and in each round with another one first. RESULTS gets a line of
# JSON for each measurement. In the environment:
#
#   BENCH   the program bench    RUN     rdma-post-run
#   ADDR    of the RDMA device   LIMIT   seconds for one measurement

rounds=$1 cases=$2 results=$3
floor=/sys/module/floor/parameters/run
errors=$(mktemp) || exit 1
trap 'rm -f "$errors"' EXIT

# measure COLUMN CASE...: prints the figures
measure() {
	column=$1
	shift
	case $column in
	s) timeout "$LIMIT" "$BENCH" "$@" "addr=$ADDR" </dev/null ;;
	o) timeout "$LIMIT" "$RUN" "$BENCH" "$@" "addr=$ADDR" </dev/null ;;
	f) echo "$* addr=$ADDR" >"$floor" && cat "$floor" ;;
	esac
}

# The columns, the N-th of them first.
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

round=0 failed=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1)) number=0
	while read -r columns line; do
		number=$((number + 1))
		for column in $(rotate "$columns" $((round + number))); do
			# shellcheck disable=SC2086
			if figures=$(measure "$column" $line 2>"$errors"); then
				set -- "$figures"
			else
				failed=$((failed + 1))
				set -- null
				echo "failed: $(name "$column"): $line: $(head -n 1 "$errors")"
			fi
			echo "{\"round\":$round,\"column\":\"$(name "$column")\",\"line\":\"$line\",\"result\":$1}" >>"$results"
		done
	done <"$cases"
	echo "round $round of $rounds"
done
[ "$failed" = 0 ]
