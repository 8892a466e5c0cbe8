#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/fuzz/fuzz.sh [options]
#
# Fuzzes the module in guests and reports what was reached and found.
#
#   -t SECONDS  of fuzzing, 600 by default; 0: only run the corpus
#   -k KERNEL   debug (default), or another of selftests/vm/run.sh's; without
#               KCOV there is no coverage to follow
#   -s SEED     of the first guest; by default from the clock
#   -u          put programs that reached something new into the corpus
#   -r FILE     run one program, verbosely, and nothing else
#   -D          programs may take the device away: slow, but the only way to the
#               code for that
#   -F          let no allocations fail
#   -p "NAME=X" parameters of the module
#   -L          look for leaks, too, with kmemleak: half as fast.  What the module
#               counts (/sys/kernel/debug/rdma_post/objects) is always looked at
#   -o DIR      for what comes of it, by default build/fuzz
#
# DIR gets finds/N (the program and what the kernel said), new/ (programs that
# reached something new), report.txt (coverage by source file, and functions that
# were never entered), coverage.txt (offsets in the module's code).
#
# Exit status: 0, 1 after a find.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"

seconds=600 kernel=debug seed='' update='' one='' out=$build_dir/fuzz flags=()
leaks='' params=''
while getopts ht:k:s:ur:DFLp:o: opt; do
	case $opt in
	t) seconds=$OPTARG ;;
	k) kernel=$OPTARG ;;
	s) seed=$OPTARG ;;
	u) update=1 ;;
	r) one=$OPTARG ;;
	D) flags+=(-d dummy0) ;;
	F) flags+=(-F) ;;
	L) leaks=1 ;;
	p) params=$OPTARG ;;
	o) out=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done

fuzz_dir=$top_dir/selftests/fuzz
fuzz=$build_dir/selftests/fuzz/fuzz
ko=$build_dir/kmod-$kernel/rdma_post.ko
corpus=$fuzz_dir/corpus
finds=0 executions=0 commands=0

build() {
	make -s -C "$fuzz_dir" OUT="$build_dir/selftests/fuzz"
	"$vm_dir/kmod.sh" "$kernel"
}

# guest SECONDS ARGS...: the fuzzer in a guest of its own, in $out/guest.  What it
# runs is written to a port, so that it is known even if the guest dies.
guest() {
	local limit=$1 append=()
	shift
	[ -n "$leaks" ] || append=(-a kmemleak=off)
	rm -rf "$out/guest"
	mkdir -p "$out/guest"
	"$vm_dir/run.sh" -k "$kernel" -t $((limit * 2 + 900)) -o "$out/guest" \
		"${append[@]}" ${params:+-p "$params"} \
		-f "$fuzz" -f "$corpus" ${one:+-f "$one:/root/program"} \
		-q -chardev -q "file,id=fuzz,path=$out/programs.log" \
		-q -device -q virtserialport,nr=3,chardev=fuzz \
		-- ./fuzz "${flags[@]}" "$@" 2>&1 | tee "$out/guest.log"
}

# The programs of the log that end with a line that begins with $1, one file each
# in the directory $2, named by what they hold.
extract() {
	local mark=$1 dir=$2 tmp
	tmp=$(mktemp -d)
	awk -v mark="$mark" -v dir="$tmp" '
		/^=== / { text = ""; next }
		index($0, mark) == 1 && $3 != "nothing" {
			file = dir "/" ++n
			# In two parts, or reuse takes it for the licence of this file.
			print "# SPDX-" "License-Identifier: GPL-2.0 OR BSD-2-Clause" >file
			printf "%s", text >file
			close(file)
		}
		/^(---|\+\+\+|!!!)/ { next }
		{ text = text $0 "\n" }' "$out/programs.log"
	mkdir -p "$dir"
	local file
	for file in "$tmp"/*; do
		[ -e "$file" ] || continue
		mv "$file" "$dir/$(sha1sum <"$file" | cut -c1-12)"
	done
	rmdir "$tmp"
}

# The guest has ended with an error: keep what it ran last.
keep_find() {
	local dir
	finds=$((finds + 1))
	dir=$out/finds/$finds
	mkdir -p "$dir"
	awk '/^=== / { text = "" } { text = text $0 "\n" } END { printf "%s", text }' \
		"$out/programs.log" | sed '/^===/d; s/^!!!/#/' >"$dir/program"
	cp "$out/guest/kernel.log" "$out/guest.log" "$dir/"
	say "a find: $dir/program"
}

collect() {
	local file n
	extract +++ "$out/new"
	for file in "$out/guest/out/coverage" "$out/coverage.txt"; do
		[ ! -e "$file" ] || cat "$file"
	done >"$out/coverage.tmp"
	awk '/^(\+\+\+|---)/ { for (i = 3; i <= NF; i++) if ($i != "nothing") print $i }' \
		"$out/programs.log" >>"$out/coverage.tmp"
	sort -u "$out/coverage.tmp" >"$out/coverage.txt"
	rm "$out/coverage.tmp"
	n=$(grep -ac '^=== ' "$out/programs.log" || true)
	executions=$((executions + n))
	n=$(sed -n 's/^fuzz: .* \([0-9]*\) commands.*/\1/p' "$out/guest.log" |
		tail -n 1)
	commands=$((commands + ${n:-0}))
}

build
mkdir -p "$out"
if [ -n "$one" ]; then
	guest 100 -r program
	exit
fi
rm -rf "$out"/{finds,new,coverage.txt,report.txt}
started=$SECONDS
while :; do
	left=$((seconds - (SECONDS - started)))
	[ "$left" -gt 0 ] || left=0
	status=0
	guest "$left" ${seed:+-s "$seed"} -t "$left" \
		-l /dev/vport0p3 -o /out/coverage corpus || status=$?
	seed=
	[ "$status" = 0 ] || keep_find
	collect
	if [ "$status" = 0 ] || [ "$finds" -ge 20 ] ||
		[ $((SECONDS - started)) -ge "$seconds" ]; then
		break
	fi
done

if [ -n "$update" ]; then
	cp "$out"/new/* "$corpus/" 2>/dev/null || true
fi
if [ -s "$out/coverage.txt" ]; then
	"$fuzz_dir/report.sh" "$ko" "$out/coverage.txt" >"$out/report.txt"
	sed '/^$/,$d' "$out/report.txt"
fi
say "$executions executions, $commands commands, $finds finds"
[ "$finds" = 0 ]
