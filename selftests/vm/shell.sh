#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/shell.sh [options] [-- COMMAND [ARGS]]
#
# Runs a shell in a guest with the module loaded and an RDMA device. Builds the module,
# the library, the tools and the examples first, and with -g the tests. The source tree is
# at /tree, its build folder at /build, read-only; the guest sees new builds of the host at
# once. If standard input is no terminal, the guest runs it as a script of bash. With a COMMAND
# the guest runs the command. selftests/vm/gdb.sh attaches to the kernel.
#
#   -o DIRECTORY   for the logs, by default build/vm/shell.KERNEL
#   -g             begin only when gdb.sh has attached
#   -k KERNEL -n NETWORK -P PARAMS -f SRC[:DEST] -M -p PARAMS -i FILE.ko -m SIZE
#   -s CPUS -a ARGS -q ARG     options of run.sh
#   -t SECONDS     time limit, a day by default
#
# Exit status: run.sh's, which is the shell's unless the kernel complained.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel=6.1 out_dir='' limit=86400 go=''
options=()
while getopts ho:gk:n:P:f:Mp:i:m:s:a:q:t: opt; do
	case $opt in
	o) out_dir=$OPTARG ;;
	g) go=1 ;;
	k) kernel=$OPTARG ;;
	t) limit=$OPTARG ;;
	M) options+=(-M) ;;
	f) # The script calls run.sh in another directory.
		src=${OPTARG%%:*}
		options+=(-f "$(realpath -s "$src")${OPTARG#"$src"}")
		;;
	i)
		src=${OPTARG%% *}
		options+=(-i "$(realpath -s "$src")${OPTARG#"$src"}")
		;;
	n | P | p | m | s | a | q) options+=("-$opt" "$OPTARG") ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))

out_dir=${out_dir:-$build_dir/vm/shell.$kernel}
mkdir -p "$out_dir"
out_dir=$(realpath "$out_dir")
[ -z "$go" ] || [[ $out_dir == "$build_dir"/* ]] ||
	die "with -g the logs must be below $build_dir"
"$vm_dir/deps.sh" build boot >&2
build_all lib tools examples ${go:+tests} >&2
# Of the examples, only the file transfer needs more than the guest has.
libcrypto=$(ldd "$build_dir/examples/file_client" | awk '/libcrypto/ { print $3 }')

if [ $# -gt 0 ]; then
	:
elif [ -t 0 ]; then
	options+=(-T)
else
	script=$(mktemp)
	trap 'rm -f "$script"' EXIT
	cat >"$script"
	options+=(-f "$script:/root/script")
	set -- bash /root/script
fi

# share DIRECTORY NAME: print the argument of -virtfs
share() {
	echo "local,path=$1,mount_tag=$2,security_model=none,readonly=on,multidevs=remap"
}

# The name of a socket must be short, so use a relative one.
cd "$out_dir"
env=("TERM=${TERM:-dumb}")
[ -z "$go" ] || env+=("vm_go=/build/${out_dir#"$build_dir/"}/go")
if [ -t 0 ]; then
	read -r rows cols < <(stty size)
	# The terminal of a program may have no size.
	[ "$rows" = 0 ] || env+=("vm_size=rows $rows cols $cols")
fi
status=0
"$vm_dir/run.sh" -B -k "$kernel" -o "$out_dir" -t "$limit" \
	-f /bin/bash:/bin/bash -f /lib/terminfo:/lib/terminfo \
	-f "$libcrypto:$libcrypto" "${options[@]}" \
	-q -virtfs -q "$(share "$top_dir" tree)" \
	-q -virtfs -q "$(share "$build_dir" build)" \
	-q -gdb -q "unix:gdb,server=on,wait=off" \
	-- env "${env[@]}" vm-shell "$@" || status=$?
exit "$status"
