#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: examples/demo.sh [--lib rdma_post|system] [-k KERNEL] [FILE]
#
# Emulates two hosts and a wire: B writes FILE into A's memory by RDMA and reads
# it back, then runs the tour of the eight posts. Builds what it needs, and as
# root installs the packages for that. FILE is libcrypto by default, some
# megabytes. --lib system does the same over the system's librdmacm.
#
# Fails unless A's copy and the copy that B read back are both equal to FILE,
# and no kernel complained.

set -euo pipefail
. "$(dirname "$0")/../selftests/vm/lib.sh"

lib=rdma_post kernel=6.1 file=''
while [ $# -gt 0 ]; do
	case $1 in
	--lib) lib=${2-} && shift ;;
	-k) kernel=${2-} && shift ;;
	-h | --help) usage && exit ;;
	-*) usage >&2 && exit 2 ;;
	*) file=$1 ;;
	esac
	shift || true
done
case $lib in
rdma_post) examples=$build_dir/examples ;;
system) examples=$build_dir/examples-system ;;
*) die "--lib is rdma_post or system" ;;
esac

check_file() {
	if [ ! -f "$1" ] || [ ! -r "$1" ]; then
		die "$1: not a file that can be read"
	fi
}

[ -z "$file" ] || check_file "$file"
started=$EPOCHREALTIME
"$vm_dir/deps.sh" build boot
if [ "$lib" = rdma_post ]; then
	build_all lib examples
	"$vm_dir/kmod.sh" "$kernel"
else
	make -s -C "$top_dir/examples" BUILD="$build_dir" LIB=system
fi

if [ -z "$file" ]; then
	file=$(ldd "$examples/file_client" |
		sed -n 's/.*libcrypto.* => \([^ ]*\) .*/\1/p')
	check_file "$file"
fi

# B has the file in its memory disk, in the memory that it sends from, in the
# memory that it reads back into, and twice on its way to the host.
size=$((($(stat -c %s "$file") >> 20) + 1))
memory=$((640 + 6 * size))
available=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) >> 10))
[ $((2 * memory)) -le "$available" ] ||
	die "$file is too big: $size MiB would take two guests of $memory MiB, and" \
		"$available MiB of memory are free"

# serve PROGRAM ARGS: run it, and let B continue when it listens
# shellcheck disable=SC2016
helpers='serve() {
	{ "$@" 2>&1; echo $? >status; } | while IFS= read -r line; do
		printf "%s\n" "$line"
		case $line in
		listening*) vm-sync listening </dev/null ;;
		esac
	done
	[ "$(cat status)" = 0 ] || exit 1
}'

# Link to the file, because run.sh takes a colon in a name for a separator.
out=$build_dir/vm/demo-$lib
mkdir -p "$out"
rm -rf "$out/a/out" "$out/b/out"
ln -sfn "$(realpath "$file")" "$out/file"
options=(-k "$kernel" -o "$out" -m "${memory}M" -t $((120 + 2 * size)))
[ "$lib" = rdma_post ] || options+=(-M)
for program in file_server file_client tour; do
	options+=(-f "$examples/$program")
done

say "two hosts over $lib: A is 10.0.1.1, B is 10.0.1.2"
status=0
"$vm_dir/pair.sh" "${options[@]}" -f "$out/file" \
	-a "$helpers
		serve ./file_server -o /out/arrived
		serve ./tour" \
	-b "set -e
		vm-sync listening
		./file_client -o /out/read-back 10.0.1.1 file
		vm-sync listening
		./tour 10.0.1.1" || status=$?

echo
printf '%s  %s\n' "$(sha256sum <"$file" | cut -d' ' -f1)" "$file"
for copy in a/out/arrived b/out/read-back; do
	if [ ! -e "$out/$copy" ]; then
		echo "$copy: missing"
		[ "$status" != 0 ] || status=1
	elif cmp "$file" "$out/$copy"; then
		printf '%s  %s, the same\n' \
			"$(sha256sum <"$out/$copy" | cut -d' ' -f1)" "$out/$copy"
	else
		status=1
	fi
done
if [ "$status" = 0 ]; then
	say "all right, in $(seconds_since "$started") s"
else
	say "FAILED with status $status"
fi
exit "$status"
