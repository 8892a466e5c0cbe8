#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: guest.sh COMMAND
#
# Boots the system on /dev/vda, with systemd in a pid namespace, and runs COMMAND there as
# a service. Exits with its status.

root=/mnt/system
mkdir -p $root /run/vm-sync
modprobe -a virtio_blk ext4
mount -t ext4 /dev/vda $root || exit 1
for dir in dev sys; do
	mount -o rbind /$dir $root/$dir
done
for dir in run tmp; do
	mount -t tmpfs -o mode=1777 tmpfs $root/$dir
done
# Both reach out of the system: files for the host, and vm-sync.
mkdir -p $root/out $root/run/vm-sync
mount -o bind /out $root/out
mount -o bind /run/vm-sync $root/run/vm-sync
cp /usr/bin/vm-sync $root/usr/bin/
printf '%s\n' "$1" >$root/root/command

# Not a chroot, in which nobody may make a user namespace: this is the root of a mount
# namespace.
# shellcheck disable=SC2016
exec unshare --mount --pid --fork sh -c '
	mount -t proc proc "$0/proc"
	cd "$0" && mount -o move . / &&
		exec chroot . /usr/bin/env -i container=other /root/boot.sh' $root
