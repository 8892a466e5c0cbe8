#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs the source package's test of the device in the system on /dev/vda, and the quick start,
# as process 1 of a namespace: udev does not work for a process in a chroot.

root=/mnt/system
mkdir -p $root
modprobe -a virtio_blk ext4
mount -t ext4 /dev/vda $root || exit 1
mount -o rbind /dev $root/dev
mount -o bind /sys $root/sys
for dir in run tmp; do
	mount -t tmpfs -o mode=1777 tmpfs $root/$dir
done
exec chroot $root /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
	unshare --pid --fork --mount --mount-proc sh -c \
	'/usr/lib/systemd/systemd-udevd --daemon && /root/device && bash /root/quickstart'
