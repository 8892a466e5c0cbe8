#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/bench/plot_docs.sh
#
# Plots the tables in Documentation/performance as the SVG files beside them, which
# Documentation/performance.rst shows: KERNEL.tsv of table.sh -d, curves.tsv of curves.sh.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"
[ $# = 0 ] || { usage >&2 && exit 2; }
cd "$top_dir/Documentation/performance"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
kernels=(6.1 6.12 7.2)

# Colours that colour-blind readers can tell apart.
style="set style line 1 lc rgb '#777777' lw 2 pt 5 ps 0.6
	set style line 2 lc rgb '#0072b2' lw 2 pt 7 ps 0.7
	set style line 3 lc rgb '#d55e00' lw 2 pt 9 ps 0.7
	set grid ytics lc rgb '#dddddd'
	set border 3
	set tics nomirror"

# The rows of KERNEL.tsv that are plotted, and short names of them.
rows='write, 64 B, polled|write, polled
send, 64 B, polled|send, polled
read, 64 B, polled|read, polled
write, 64 B, sleeping|write, sleeping
send, 64 B, sleeping|send, sleeping
read, 64 B, sleeping|read, sleeping
request and answer, 64 B, sleeping|echo, sleeping
rate, 64 B, depth 64, batches of 16|writes, by 16
bandwidth, 64 KiB|64 KiB
bandwidth, 1 MiB|1 MiB
connect to first byte delivered|connect
register + deregister 4 KiB|register 4 KiB
register + deregister 1 MiB|register 1 MiB'

# ratios KERNEL: write "name median low high" of the time against the system's libraries.
# A rate is turned over.
ratios() {
	awk -F '\t' -v rows="$rows" '
		BEGIN {
			n = split(rows, lines, "\n")
			for (i = 1; i <= n; i++) {
				split(lines[i], part, "|")
				name[part[1]] = part[2]
			}
		}
		$1 in name && match($5, /\[.*\]/) {
			split($5, all, /[][ ]+/)
			if ($1 ~ /^(rate|bandwidth)/)
				printf "\"%s\" %f %f %f\n", name[$1], 1 / all[1], 1 / all[3], 1 / all[2]
			else
				printf "\"%s\" %f %f %f\n", name[$1], all[1], all[2], all[3]
		}' "$1.tsv" >"$data/ratios.$1"
}

# latencies KERNEL: write "name system ours floor", the medians in us.
latencies() {
	awk -F '\t' -v rows="$rows" '
		function us(text, part) {
			split(text, part, /[\/ ]/)
			return part[1] * (text ~ /^[0-9.\/]+ ms/ ? 1000 : 1)
		}
		BEGIN {
			n = split(rows, lines, "\n")
			for (i = 1; i <= n; i++) {
				split(lines[i], part, "|")
				name[part[1]] = part[2]
			}
		}
		$1 in name && $1 ~ /^(write|send|read), 64 B/ {
			printf "\"%s\" %f %f %f\n", name[$1], us($2), us($3), us($4)
		}' "$1.tsv" >"$data/latency.$1"
}

# curve NAME KERNEL: write "x system ours floor"
curve() {
	awk -F '\t' -v OFS='\t' -v curve="$1" -v kernel="$2" \
		'$1 == kernel && $2 == curve { print $3, $4, $5, $6 }' curves.tsv
}

# draw NAME WIDTH HEIGHT COMMANDS
draw() {
	gnuplot <<-END
		set terminal svg size $2,$3 font 'sans,12' background 'white' noenhanced
		set output '$1.svg'
		$style
		$4
	END
}

plot_ratios() {
	local kernel i=0 curves=''
	for kernel in "${kernels[@]}"; do
		ratios "$kernel"
		i=$((i + 1))
		curves+="${curves:+, }'$data/ratios.$kernel' using (\$0 + ($i - 2) * 0.22):2:3:4"
		curves+=" with yerrorbars ls $i title 'Linux $kernel'"
	done
	draw ratios 800 420 "set ylabel 'time, system = 1'
		set yrange [0:2.4]
		set xrange [-0.6:12.6]
		set xtics rotate by -40 left
		set key top right
		set arrow from -0.6,1 to 12.6,1 nohead lc rgb '#333333'
		plot $curves, '$data/ratios.6.1' using 0:(NaN):xtic(1) notitle"
}

plot_latencies() {
	local kernel panels=''
	for kernel in "${kernels[@]}"; do
		latencies "$kernel"
		panels+="set title 'Linux $kernel'
			plot '$data/latency.$kernel' using 2:xtic(1) ls 1 title 'system', '' using 3 ls 2 title 'librdma_post', '' using 4 ls 3 title 'loop in the kernel'
			set ylabel ''
			unset key
			"
	done
	draw latency 900 380 "set multiplot layout 1,3
		set style data histogram
		set style fill solid 0.85 noborder
		set yrange [0:180]
		set xtics rotate by -50 left
		set ylabel 'median, us'
		set key top left
		set bmargin 6
		$panels"
}

# plot_curve NAME CURVE XLABEL YLABEL SETTINGS
plot_curve() {
	local kernel panels='' counted
	mapfile -t counted < <(sed 1d curves.tsv | cut -f 1 | uniq)
	for kernel in "${counted[@]}"; do
		curve "$2" "$kernel" >"$data/$2.$kernel"
		panels+="set title 'Linux $kernel'
			plot '$data/$2.$kernel' using 1:2 with linespoints ls 1 title 'system', '' using 1:3 with linespoints ls 2 title 'librdma_post', '' using 1:4 with linespoints ls 3 title 'loop in the kernel'
			set ylabel ''
			unset key
			"
	done
	draw "$1" $((400 * ${#counted[@]})) 340 "set multiplot layout 1,${#counted[@]}
		set xlabel '$3'
		set ylabel '$4'
		$5
		$panels"
}

plot_ratios
plot_latencies
plot_curve instructions-size write 'message size in bytes' 'instructions for a write' \
	"set logscale x 2; set logscale y; set key bottom right; set xrange [48:90000]
	set yrange [1000:2000000]; set format y '%.0f'
	set xtics ('64' 64, '256' 256, '1 Ki' 1024, '4 Ki' 4096, '16 Ki' 16384, '64 Ki' 65536)"
plot_curve instructions-batch batch 'work requests in a call' 'instructions for each' \
	"set logscale x 2; set yrange [0:]; set key bottom left; set xrange [0.8:80]"
