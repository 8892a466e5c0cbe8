#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints the names of the system's files and directories, but for logs, caches, DKMS's key and
# what is not the system's.

find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
	-o -path /root -o -path /build -o -path /repository -o -path /lost+found -o -path /out \
	-o -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/tmp \
	-o -path '/var/lib/dpkg/*-old' -o -path '/var/lib/dkms/mok.*' -o -path /etc/apt \) -prune -o -print | sort
