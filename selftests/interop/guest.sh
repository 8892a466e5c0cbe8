#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: guest.sh "LIBRARY..." [smoke|first|FUNCTION...]
#
# Runs the cases in the guest, in a root directory with only Debian's
# packages, from /dev/vda: first over the system's libraries, then over
# librdma_post, without uverbs and providers, and with nothing in /sys but CPUs
# and network interfaces.

# shellcheck disable=SC2153
libraries=$1
shift
root=/mnt/debian
suite=$root/suite
trap 'cp $suite/results /out/results' EXIT
mkdir -p $root
# A crash shows in the program's status; keep it out of the kernel's log.
echo 0 >/proc/sys/debug/exception-trace
mount -t ext4 -o ro /dev/vda $root || exit 1
mount -o bind /root/interop $suite || exit 1
mount -t proc proc $root/proc
for dir in tmp run root; do
	mount -t tmpfs tmpfs $root/$dir
done
run_cases() {
	local library=$1
	shift
	chroot $root /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C VERBOSE="$VERBOSE" LIMIT="$LIMIT" SUITE="$SUITE" \
		/suite/run_cases.sh "$library" /suite/results "$@"
}

# The system's libraries get all devices of the guest.
system_root() {
	mount -o rbind /dev $root/dev
	mount -o bind /sys $root/sys
}

# librdma_post gets the devices of a container, and /dev/rdma_post.
rdma_post_root() {
	# Processes that were killed may not be gone yet.
	local n=0
	until rmmod rdma_ucm; do
		n=$((n + 1))
		[ $n -lt 100 ] || exit 1
		sleep 0.1
	done
	# Create the device anew, so that its GIDs are in the same order again.
	rdma link del rxe0
	rdma link add rxe0 type rxe netdev dummy0 || exit 1
	mount -t tmpfs tmpfs $root/dev
	for node in null zero full random urandom tty rdma_post; do
		[ -e /dev/$node ] || continue
		: >$root/dev/$node
		mount -o bind /dev/$node $root/dev/$node
	done
	# UCX looks for the node here, where the udev rule makes a link.
	mkdir $root/dev/infiniband $root/dev/shm $root/dev/pts
	ln -s ../rdma_post $root/dev/infiniband/rdma_post
	mount -t tmpfs tmpfs $root/dev/shm
	mount -o bind /dev/pts $root/dev/pts
	ln -s /proc/self/fd $root/dev/fd
	# UCX needs the CPUs (glibc's sysconf() sets errno without) and interfaces.
	mount -t tmpfs tmpfs $root/sys
	for dir in devices/system/cpu devices/virtual/net class/net; do
		mkdir -p $root/sys/$dir
		mount -o bind /sys/$dir $root/sys/$dir
	done
	mount -t tmpfs tmpfs $root/etc/libibverbs.d
	mount -t tmpfs tmpfs $root/usr/lib/x86_64-linux-gnu/libibverbs
}

for library in $libraries; do
	"${library}_root"
	run_cases "$library" "$@"
	umount -l $root/sys
	umount -l $root/dev
done

