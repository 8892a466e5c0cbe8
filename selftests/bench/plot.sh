#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/plot.sh DIRECTORY
#
# Plots DIRECTORY/results.json as files in DIRECTORY: latency against size, rate
# against depth and against batch, cost against connections and processes.
# Points are medians, and error bars are quartiles.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"
[ $# = 1 ] || { usage >&2 && exit 2; }
cd "$1"

# points PREFIX PARAMETER FIGURE SCALE [SUFFIX]: write a file for each column,
# with lines "value median q1 q3" of the cases that are PREFIX with
# PARAMETER=VALUE. A parameter that a case does not have is 1.
points() {
	local column
	for column in system ours floor; do
		jq -r --arg column "$column" --arg prefix "$1" --arg name "$2" \
			--arg figure "$3" --argjson scale "$4" --arg suffix "${5-}" '
			def number: capture("(?<n>[0-9]+)(?<u>[KM]?)")
				| (.n | tonumber) * ({ "K": 1024, "M": 1048576 }[.u] // 1);
			[.[] | .line |= sub(" ms=[0-9]+"; "")
			 | (.line | [scan(" " + $name + "=([0-9]+[KM]?)")[]][0] // "1") as $value
			 | select((.line | sub(" " + $name + "=[0-9]+[KM]?"; "")) == $prefix + $suffix)
			 | select(.columns[$column][$figure])
			 | [($value | number)] + (.columns[$column][$figure]
				| [.median, .q1, .q3] | map(. * $scale))]
			| sort | unique_by(.[0]) | .[] | @tsv' \
			results.json >"points.$column"
	done
}

# plot NAME TITLE XLABEL YLABEL [SETTING]
plot() {
	local column curves=''
	for column in system ours floor; do
		[ -s "points.$column" ] || continue
		curves+="${curves:+, }'points.$column' using 1:2:3:4 title '$column'"
		curves+=" with yerrorlines pt 7 ps 0.5"
	done
	[ "$(cat points.* | cut -f 1 | sort -u | wc -l)" -gt 1 ] || return 0
	gnuplot <<-END
		set terminal svg size 640,400 font 'sans,12' background 'white'
		set output '$1.svg'
		set title '$2'
		set xlabel '$3'
		set ylabel '$4'
		set key left top
		set grid
		${5-}
		plot $curves
	END
}

# 0 bytes have no logarithm and are not plotted.
sizes='set logscale x 2; set logscale y; set xrange [32:2097152]; set xtics ("64" 64,'
sizes+=' "1 Ki" 1024, "4 Ki" 4096, "16 Ki" 16384, "64 Ki" 65536, "256 Ki" 262144,'
sizes+=' "1 Mi" 1048576)'
for op in write read send; do
	for mode in poll sleep; do
		points "latency op=$op mode=$mode" size p50 0.001
		sed -i '/^0\t/d' points.*
		plot "latency-$op-$mode" "latency, $op, $mode" 'message size in bytes' \
			'median in us' "$sizes"
	done
done
points 'rate op=write size=64' depth rate 0.001
plot rate-depth 'message rate, write of 64 bytes, one at a time' \
	'depth' '1,000/s' 'set logscale x 2; set yrange [0:]'
points 'rate op=write size=64 depth=64' batch rate 0.001
plot rate-batch 'message rate, write of 64 bytes, depth 64' \
	'work requests in a call' '1,000/s' 'set logscale x 2; set yrange [0:]'
points 'latency op=write size=64 mode=poll' conns p50 0.001
plot cost-connections 'write of 64 bytes, polled, connections in turn' \
	'connections' 'median in us' 'set logscale x; set yrange [0:]'
points 'latency op=write size=64 mode=poll' procs p50 0.001
plot cost-processes 'write of 64 bytes, polled, in many processes' \
	'processes' 'median in us' 'set logscale xy'
rm -f points.*
