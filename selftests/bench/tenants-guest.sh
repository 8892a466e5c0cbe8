#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: tenants-guest.sh ADDR ROUNDS
#
# Measures for docs.sh, as root, at an address of an RDMA device. Prints for each
# measurement a line: who, and bench's JSON. The environment: BENCH and RUN as for guest.sh;
# rdma-post is in the PATH.

addr=$1 rounds=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# writes WHO PORT SIZE MS [COMMAND...]: write one after the other
writes() {
	who=$1 port=$2 size=$3 ms=$4
	shift 4
	"$@" "$RUN" "$BENCH" latency op=write mode=sleep "addr=$addr" "port=$port" \
		"size=$size" "ms=$ms" | sed "s/^/\"$who\" /"
}

third() {
	writes "$1" 18515 64K 3000
	writes "$1" 18515 64 3000
}

# tenant RATE PORT: write for a little longer than the third one
tenant() { writes "$1" "$2" 64K 10000 rdma-post run --rate "$1" -- >"$dir/$1"; }

for _ in $(seq "$rounds"); do
	third alone
	tenant 1M 18516 &
	one=$!
	tenant 3M 18517 &
	three=$!
	sleep 1
	third beside
	# What was measured after a tenant has ended is of no use.
	kill -0 "$one" && kill -0 "$three" || exit 1
	wait
	cat "$dir/1M" "$dir/3M"
done
