#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/gdb.sh [-k KERNEL] [-c COMMAND] [-- ARGS]
#
# Attaches gdb, with ARGS, to the kernel of the guest that shell.sh runs in another
# terminal; or, with -c, boots a guest in which COMMAND begins when gdb lets the kernel
# continue. gdb knows lines, types and variables of the module, and the names of the
# kernel's functions; if linux-image-VERSION-dbg is installed, it knows lines, types and
# variables of the kernel, too. When gdb ends, the guest goes on without it.
#
#   selftests/vm/gdb.sh -c post -- -batch -ex "break rpost_post" \
#       -ex continue -ex backtrace
#
# Exit status: gdb's, or, if the guest of -c failed, the guest's.

set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel=6.1 command=''
while getopts hk:c: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	c) command=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))

"$vm_dir/deps.sh" guests gdb >&2

# kernel_symbols OBJECT: make an object of nothing but the symbols of the kernel's
# functions. Distributions strip their kernels, but /proc/kallsyms has the symbols, and
# with nokaslr their addresses are the same at each boot.
kernel_symbols() {
	local object=$1 out=$build_dir/vm/kallsyms.$kernel
	say "asking the kernel for its symbols"
	"$vm_dir/run.sh" -k "$kernel" -M -n none -o "$out" -- \
		sh -c 'cat /proc/kallsyms >/out/kallsyms'
	awk '
		NF == 3 && $2 ~ /^[tTwW]$/ && !seen[$3]++ {
			if (!base) {
				base = $1
				print ".section .kernel, \"ax\", @nobits"
				print ".set base, ."
			}
			printf ".type \"%s\", @function\n", $3
			printf ".set \"%s\", base + 0x%s - 0x%s\n", $3, $1, base
		}
		END { print ".space 1 << 27" }' "$out/out/kallsyms" | as -o "$object.$$"
	awk 'NF == 3 && $2 ~ /^[tTwW]$/ { print $1; exit }' "$out/out/kallsyms" \
		>"$object.base"
	mv "$object.$$" "$object"
}

# Print gdb's commands to attach and to load the symbols.
attach() {
	local release image=$cache_dir/kernels/$kernel/kallsyms.o sections section
	release=$(cat "$cache_dir/kernels/$kernel/release")
	echo "set confirm off"
	echo "set architecture i386:x86-64"
	# The module's debug information has paths relative to the tree.
	echo "directory $top_dir"
	if [ -e "/usr/lib/debug/boot/vmlinux-$release" ]; then
		echo "file /usr/lib/debug/boot/vmlinux-$release"
	else
		[ -e "$image" ] || kernel_symbols "$image" >&2
		echo "add-symbol-file $image -s .kernel 0x$(cat "$image.base")"
	fi
	read -ra sections < <(sed -n 's/\r$//; s/.*vm-sections: //p' "$dir/kernel.log" |
		tail -n 1)
	echo -n "add-symbol-file $build_dir/kmod-$kernel/rdma_post.ko"
	for section in "${sections[@]}"; do
		echo -n " -s ${section%=*} ${section#*=}"
	done
	echo
	# The name of a socket must be short, so use a relative one.
	printf '%s\n' "cd $dir" "target remote ./gdb" "cd $PWD" "set confirm on" \
		"shell touch $dir/go"
}

guest=''
if [ -n "$command" ]; then
	dir=$build_dir/vm/gdb.$kernel
	mkdir -p "$dir"
	rm -f "$dir/kernel.log"
	# The guest gets a session of its own, so that Ctrl-C reaches gdb only.
	setsid "$vm_dir/shell.sh" -g -k "$kernel" -o "$dir" -- sh -c "$command" \
		</dev/null &
	guest=$!
	trap 'kill -- -"$guest" 2>/dev/null || true' EXIT
else
	dir=$build_dir/vm/shell.$kernel
	if [ ! -e "$dir/.lock" ] || flock -n "$dir/.lock" true; then
		die "no guest: start selftests/vm/shell.sh -k $kernel in another terminal," \
			"or say what a guest is to run"
	fi
fi
until grep -qs 'vm-sections: ' "$dir/kernel.log"; do
	[ -z "$guest" ] || kill -0 "$guest" 2>/dev/null || die "the guest did not start"
	sleep 0.2
done

attach >"$dir/attach.gdb"
status=0
gdb -q -x "$dir/attach.gdb" "$@" || status=$?
if [ -n "$guest" ]; then
	# The guest waits for this file if gdb could not attach.
	touch "$dir/go"
	wait "$guest" || status=$?
	trap - EXIT
fi
exit "$status"
