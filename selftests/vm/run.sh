#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/vm/run.sh [options] -- COMMAND [ARGS]
#
# Boots a guest with a software RDMA device, runs COMMAND in it as root in
# /root, and exits with its status. Shows the output live, and checks the
# kernel's log.
#
#   -k KERNEL      6.1 (default), 6.12, 7.2, debug, debug-6.1, debug-kcsan, or
#                  userland-SUITE: that of userland.sh
#   -n NETWORK     dummy (default): rxe0, 10.0.0.1/24, fd00::1/64
#                  veth: rxe0 and rxe1, .1 and .2, joined by a wire
#                  siw: siw0 (iWARP), otherwise like dummy; debug kernels only
#                  sim: sim0 of selftests/rdmasim, which is built if needed,
#                  otherwise like dummy; rdma_post.ko offers it
#                  none
#   -P "NAME=X .." parameters of rdmasim.ko, with -n sim
#   -f SRC[:DEST]  add a file or directory, by default as /root/NAME
#   -B             build the module first (see kmod.sh)
#   -M             do not load rdma_post.ko, even if it is built
#   -p "NAME=X .." parameters of rdma_post.ko
#   -i "FILE.ko NAME=X .."  load this module too, after rdma_post.ko
#   -U             do not unload rdma_post.ko at the end
#   -m SIZE        memory, 1G by default
#   -s CPUS        2 by default
#   -I             count instructions: one CPU whose clock advances by 1 ns with
#                  each instruction, so that all runs are the same
#   -t SECONDS     time limit without the boot, 120 by default
#   -a ARGS        add to the kernel's command line
#   -o DIRECTORY   for the logs, by default build/vm/COMMAND.KERNEL
#   -q ARG         one more argument for QEMU
#   -T             connect the guest's terminal, /dev/hvc0, to this one, for input,
#                  too; Ctrl-A x ends QEMU
#
# In the guest "vm-user COMMAND" runs COMMAND as nobody;
# /vm/modules/rdma_post.ko is the module, for commands that load it again.
#
# A guest that has not begun COMMAND is booted up to three times. RPOST_ONLY is passed on
# to the guest (run_tests.sh, compare.sh).
#
# Exit status: COMMAND's; 99 if the kernel complained or died or the module did
# not unload within ten seconds; 124 after the time limit; 125 if the guest could not
# be set up.
# The directory gets output.log, kernel.log, qemu.log, and out/ with the files
# of the guest's /out.

set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$vm_dir/initramfs.sh"
. "$vm_dir/guest.sh"

# The status of an error of this script differs from those of commands.
die_status=125
kernel=6.1 network=dummy memory=1G smp=2 limit=120 append='' params='' sim='' out_dir=''
load=1 unload=1 build='' name='' host=1 sync='' icount='' input=/dev/null
files=() modules=() qemu_args=()

while getopts hk:n:P:f:BMp:i:Um:s:It:a:o:q:Tw:W: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	n) network=$OPTARG ;;
	P) sim=$OPTARG ;;
	f) files+=("$OPTARG") ;;
	B) build=1 ;;
	M) load='' ;;
	p) params=$OPTARG ;;
	i) modules+=("$OPTARG") ;;
	U) unload='' ;;
	m) memory=$OPTARG ;;
	s) smp=$OPTARG ;;
	I) icount=1 ;;
	t) limit=$OPTARG ;;
	a) append=$OPTARG ;;
	o) out_dir=$OPTARG ;;
	q) qemu_args+=("$OPTARG") ;;
	T) input=/dev/tty ;;
	w) host=$OPTARG sync=1 ;; # pair.sh: the number of this host
	W) host=$OPTARG sync='' ;; # without vm-sync
	h) usage && exit ;;
	*) usage >&2 && exit 125 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || die "no command: selftests/vm/run.sh [options] -- COMMAND [ARGS]"
case $network in
dummy | veth | siw | sim | none | wire) ;;
*) die "$network: networks are dummy, veth, siw, sim and none" ;;
esac

[ -z "$icount" ] || smp=1

need qemu-system-x86_64 cpio flock strip

# Lock the directory for the logs until this script ends.
claim_out_dir() {
	local base n=''
	name=$(basename "${1%% *}" | tr -cd 'A-Za-z0-9._-')
	base=${out_dir:-$build_dir/vm/$name.$kernel}
	while :; do
		out_dir=$base$n
		mkdir -p "$out_dir"
		exec {out_lock}>"$out_dir/.lock"
		! flock -n "$out_lock" || break
		[ -z "$explicit_out" ] || die "$out_dir is in use by another run"
		n=.$((${n#.} + 1))
	done
	find "$out_dir" -mindepth 1 ! -name .lock -delete
}

find_kernel() {
	case $kernel in
	debug*) "$vm_dir/debug-kernel.sh" "$kernel" || exit 125 ;;
	userland-*) "$vm_dir/userland.sh" "${kernel#userland-}" >/dev/null || exit 125 ;;
	*) "$vm_dir/fetch.sh" "$kernel" || exit 125 ;;
	esac
	release=$(cat "$cache_dir/kernels/$kernel/release")
	image=$cache_dir/kernels/$kernel/vmlinux
	[ -e "$image" ] || image=$cache_dir/kernels/$kernel/bzImage
}

# Add the project's module to the list, unless it was not built, or for -M.
find_module() {
	local ko=$build_dir/kmod-$kernel/rdma_post.ko
	[ -z "$build" ] || "$vm_dir/kmod.sh" "$kernel" || exit 125
	[ -n "$load" ] || return 0
	if [ ! -e "$ko" ]; then
		say "no $ko: running without the module (selftests/vm/kmod.sh $kernel)"
	else
		[ -z "$(find "$top_dir/kmod" "$top_dir/uapi" -newer "$ko" -name '*.[ch]' \
			2>/dev/null)" ] || say "warning: $ko is older than its sources"
		modules=("$ko $params" "${modules[@]}")
	fi
}

# rdma_post.ko does not offer devices of these drivers by default.
name_driver() {
	local driver
	case $network in
	siw) driver=siw ;;
	sim) driver=rdmasim ;;
	*) return ;;
	esac
	[[ " $params" = *' devices='* ]] || params+=" devices=$driver"
}

# Build the driver of -n sim.
find_sim() {
	[ "$network" = sim ] || return 0
	"$vm_dir/kmod.sh" -s "$top_dir/selftests/rdmasim" "$kernel" || exit 125
}

quote() {
	local arg
	for arg; do
		printf " '%s'" "${arg//\'/\'\\\'\'}"
	done
}

write_conf() {
	printf '%s=%s\n' vm_name "$name" vm_net "$network" vm_host "$host" \
		vm_sim "'$sim'" vm_sync "'$sync'" vm_unload "'$unload'" vm_limit "$limit" \
		vm_modules "'$(tr -s '\n\t' '  ' <<<"$vm_modules")'"
}

make_initramfs() {
	local stage=$out_dir/stage spec src dest file
	base_initramfs "$kernel" "$release"
	mkdir -p "$stage"/vm/modules "$stage"/usr/bin
	cp "$vm_dir/guest/init" "$stage/init"
	cp "$vm_dir/guest/net" "$stage/vm/"
	cp "$vm_dir"/guest/vm-* "$stage/usr/bin/"
	write_conf >"$stage/vm/conf"
	{
		[ -z "${RPOST_ONLY-}" ] || echo "export RPOST_ONLY='$RPOST_ONLY'"
		printf 'exec%s\n' "$(quote "$@")"
	} >"$stage/vm/command"
	for spec in "${modules[@]}"; do
		file=${spec%%.ko*}.ko
		[ -e "$file" ] || die "$file: no such file"
		strip --strip-debug -o "$stage/vm/modules/$(basename "$file")" "$file"
		printf '/vm/modules/%s\n' "$(basename "$file")${spec#"$file"}"
	done >"$stage/vm/insmod"
	[ "$network" != sim ] || strip --strip-debug -o "$stage/vm/rdmasim.ko" \
		"$build_dir/rdmasim-$kernel/rdmasim.ko"
	for file in "$build_dir"/lib/librdma_post.so*; do
		[ ! -e "$file" ] || put "$stage" "$file" \
			"/usr/lib/x86_64-linux-gnu/$(basename "$file")"
	done
	for spec in "${files[@]}"; do
		src=${spec%%:*}
		dest=/root/$(basename "$src")
		[[ $spec != *:* ]] || dest=${spec#*:}
		[ -e "$src" ] || die "$src: no such file"
		put "$stage" "$src" "$dest"
	done
	put_needed "$stage"
	pack "$stage" | cat "$base_cpio" - >"$out_dir/initramfs.cpio"
	rm -rf "$stage"
}

# Print why the run failed and exit, or return the command's status.
verdict() {
	local qemu=$1 status='' unload=0 setup='' end='' words word
	read -rd '' -a words <"$out_dir/status" || true
	for word in "${words[@]}"; do
		case $word in
		status=*) status=${word#*=} ;;
		unload=*) unload=${word#*=} ;;
		setup=*) setup=${word#*=} ;;
		end) end=1 ;;
		esac
	done
	sed -i 's/\r$//' "$out_dir/kernel.log"
	fail() {
		say "FAIL: $2 (log in $out_dir)"
		exit "$1"
	}
	if splats; then
		fail 99 "the kernel complained, see above; the command's status: ${status:-none}"
	elif [ "$status" = timeout ] || [ "$qemu" = 124 ] || [ "$qemu" = 137 ]; then
		# The guest's watchdog made the kernel print the blocked tasks.
		grep -A 20 'Show Blocked State' "$out_dir/kernel.log" >&2 ||
			tail -n 5 "$out_dir/kernel.log" >&2
		fail 124 "no end after $limit s"
	elif is_loading && ! is_up; then
		tail -n 5 "$out_dir/kernel.log" >&2
		fail 99 "a module does not load"
	elif [ -n "$setup" ] || ! is_up; then
		tail -n 5 "$out_dir/kernel.log" >&2
		die "the guest did not start its command in $boots boots${setup:+: $setup}"
	elif [ -z "$end" ] || [ -z "$status" ]; then
		cat "$out_dir/qemu.log" >&2
		tail -n 5 "$out_dir/kernel.log" >&2
		fail 99 "the guest died (QEMU's status $qemu)"
	elif [ "$unload" != 0 ]; then
		fail 99 "rdma_post does not unload; the command's status: $status"
	fi
	return "$status"
}

start=$EPOCHREALTIME
explicit_out=$out_dir
claim_out_dir "$1"
find_kernel
name_driver
find_sim
find_module
need_room "$out_dir" 500
make_initramfs "$@"
trap 'rm -f "$out_dir/initramfs.cpio"' EXIT
say "kernel $release, initramfs $(($(stat -c %s "$out_dir/initramfs.cpio") >> 20)) MB" \
	"made in $(seconds_since "$start") s, log in $out_dir"

# What is booted, as a hash
booted_key() {
	{
		cat "$image" "$out_dir/initramfs.cpio"
		qemu-system-x86_64 --version
		kernel_args "$(accelerator "$image")"
		echo "$append $smp $memory $icount"
	} | sha256sum | cut -c1-24
}

# With RPOST_PASSED, a directory, a guest that passes leaves its output there, and with
# RPOST_RESUME it is not run again if it would boot the same. A guest has no network;
# one with a wire or with the host's folders has inputs that the hash does not see.
recall() {
	[ -n "${RPOST_PASSED-}" ] && [ ${#qemu_args[@]} = 0 ] || return 0
	passed=$RPOST_PASSED/$(booted_key)
	[ -n "${RPOST_RESUME-}" ] && [ -d "$passed" ] || return 0
	cp -a "$passed/." "$out_dir/"
	cat "$out_dir/output.log"
	say "the same has passed before"
	exit 0
}

remember() {
	[ -n "$passed" ] || return 0
	[ ! -d "$passed" ] || return 0
	mkdir -p "$passed.$$"
	cp -a "$out_dir/output.log" "$passed.$$/"
	[ ! -d "$out_dir/out" ] || cp -a "$out_dir/out" "$passed.$$/"
	mv -T "$passed.$$" "$passed" || rm -rf "$passed.$$"
}

passed=''
recall

# The guest's own watchdog ends the command before, unless the guest is dead. It
# does not count the boot, which is slow with KASAN.
boot_limit=150
[[ $kernel != debug* ]] || boot_limit=400
grace=$((boot_limit + 60))
# The clock of a guest that counts instructions is not the host's.
[ -z "$icount" ] || grace=$((grace + limit))
# The guests of a pair wait for each other, and each may have to boot three times.
[ -z "$sync" ] || grace=$((grace + 2 * boot_limit))

# Kill the QEMU of a guest that is not up in time. Another run may take the lock
# before this ends.
watch_boot() {
	local i
	exec {out_lock}>&-
	for ((i = 0; i < boot_limit; i++)); do
		! is_up || return 0
		sleep 1
	done
	! is_up || return 0
	say "not up after $boot_limit s"
	tail -n 3 "$out_dir/kernel.log" >&2
	kill "$1"
}

# Run the guest, and set qemu_status.
run_qemu() {
	local qemu_pid tee_pid watch_pid
	rm -f "$out_dir"/{kernel.log,status,qemu.log,out.tar}
	touch "$out_dir"/{kernel.log,status,qemu.log}
	qemu_status=0
	exec 3> >(exec tee "$out_dir/output.log")
	tee_pid=$!
	qemu_run $((limit + grace)) "${qemu_args[@]}" <"$input" &
	qemu_pid=$!
	exec 3>&-
	watch_boot "$qemu_pid" &
	watch_pid=$!
	# shellcheck disable=SC2064
	trap "kill $qemu_pid $watch_pid 2>/dev/null; rm -f '$out_dir/initramfs.cpio'" EXIT
	trap 'exit 130' INT TERM
	wait "$qemu_pid" || qemu_status=$?
	kill "$watch_pid" 2>/dev/null || true
	wait "$watch_pid" || true
	trap 'rm -f "$out_dir/initramfs.cpio"' EXIT
	wait "$tee_pid" || true
}

# The guest is about to run its command.
is_up() { grep -q '^up$' "$out_dir/status"; }

# The guest has begun to load the modules of this run.
is_loading() { grep -q '^load$' "$out_dir/status"; }

# Has QEMU's emulator run code that the kernel was patching? On a busy host it does so
# at times (jump labels). Then the byte before the address of the trap is no int3
# instruction (cc) in the kernel's memory. Linux 6.1 writes "int3: 0000 [#1]", later
# kernels write "Oops: " before it.
emulator_failed() {
	# It is the first that the kernel complains of.
	[[ $(own_log | grep -E -m 1 "$splat_pattern" || true) == *'int3: 0000 [#'* ]] ||
		return
	grep -A 9 'int3: 0000 \[#' "$out_dir/kernel.log" | grep -m 1 ' Code: ' |
		grep -qv 'cc <'
}

# Set again to the reason to boot the guest again; false if there is none. A module that
# does not load is none, and the guests of a pair begin their commands together.
boot_again() {
	again=''
	if is_up; then
		[ -n "$sync" ] || ! emulator_failed ||
			again="QEMU ran code that the kernel was patching"
	elif is_loading && ! emulator_failed; then
		:
	elif ! grep -q 'Run /init as init process' "$out_dir/kernel.log"; then
		again="the kernel did not start /init"
	elif emulator_failed || ! splats >/dev/null 2>&1; then
		again="the guest did not start its command"
	fi
	[ -n "$again" ]
}

booted=$EPOCHREALTIME
for ((boots = 1; ; boots++)); do
	run_qemu
	if [ "$boots" = 3 ] || ! boot_again; then
		break
	fi
	say "$again: booting it once more"
done
say "guest ran for $(seconds_since "$booted") s"
if [ -s "$out_dir/out.tar" ]; then
	mkdir -p "$out_dir/out"
	tar -C "$out_dir/out" -xf "$out_dir/out.tar"
	rm "$out_dir/out.tar"
fi
status=0
verdict "$qemu_status" || status=$?
[ "$status" != 0 ] || remember
exit "$status"
