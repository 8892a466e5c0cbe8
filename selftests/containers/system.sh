# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2034,SC2054,SC2154
# A system of Debian with engines of containers and what their images are made of, as a
# disk for guests. Sourced after vm/lib.sh, by containers.sh and demo-containers.sh, which
# set suite.

containers_dir=$top_dir/selftests/containers
work=$build_dir/containers
root=$work/root

in_root() { "$vm_dir/userland.sh" -r "$root" "$@"; }

# Programs that need no file but themselves
static_programs() {
	local source
	mkdir -p "$work/static"
	for source in "$top_dir/examples/hello.c" "$containers_dir/region.c"; do
		# glibc warns of getaddrinfo(), which needs its libraries for names of hosts.
		gcc -O2 -Wall -Wextra -static -I"$top_dir/userlib/include" \
			-o "$work/static/$(basename "$source" .c)" "$source" \
			"$build_dir/lib/librdma_post.a" 2>"$work/gcc.log" ||
			{ cat "$work/gcc.log" >&2 && return 1; }
	done
}

# Make the folders that images are made of, in the system: /images/static has nothing but
# two programs; /images/rping has programs of rdma-core's, without the packages that they need, and
# librdma_post.
image_folders() {
	in_root mkdir -p /images/rping /images/static &&
		in_root cp "$work"/static/{hello,region} "$root/images/static/" &&
		make -s -C "$top_dir/userlib" BUILD="$build_dir" PREFIX=/usr \
			DESTDIR="$work/install" install &&
		in_root sh -ec '
			cd /images/rping
			mkdir -p usr/bin usr/lib tmp etc proc sys dev
			ln -s usr/lib lib
			ln -s usr/lib lib64
			ln -s usr/bin bin
			for name in rping udaddy mckey ibv_rc_pingpong ibv_ud_pingpong busybox; do
				cp /usr/bin/$name usr/bin/
			done
			for name in sh cat ls id readlink dirname cut find grep sed; do
				ln -s busybox usr/bin/$name
			done
			# pthread_exit() loads libgcc_s.
			{ ldd /usr/bin/rping | grep -o "/[^ ]*" | grep -v -e librdmacm -e libibverbs
			  echo /lib/*/libgcc_s.so.1; } |
				while read -r lib; do
					cp -L "$lib" usr/lib/
				done' &&
		in_root cp -a "$work"/install/usr/lib/librdma_post.so.1* \
			"$work/install/usr/lib/rdma_post" "$root/images/rping/usr/lib/" &&
		in_root cp "$work/install/usr/bin/rdma-post-run" "$build_dir/bin/rdma-post" \
			"$root/images/rping/usr/bin/"
}

# make_system DISK FILE...: make $work/DISK, whose /root has these files
make_system() {
	local disk=$work/$1 tar mb
	shift
	tar=$("$vm_dir/userland.sh" "$suite-containers") || return
	lock "$work/.lock"
	in_root rm -rf "$root"
	mkdir -p "$root"
	in_root tar -C "$root" --exclude='./dev/*' -xf "$tar" && static_programs &&
		image_folders &&
		in_root cp "$@" "$root/root/" &&
		in_root cp "$build_dir/bin/rdma-post" "$root/usr/bin/" &&
		in_root cp "$containers_dir/boot.sh" "$root/root/boot.sh" &&
		# The tools are this host's, and the system may have another libc.
		in_root rdma-post --version &&
		# No other driver of storage works in this guest.
		in_root sh -ec 'useradd -m -s /bin/sh alice
			printf "%s\n" "[storage]" "driver = \"vfs\"" \
				"runroot = \"/run/containers/storage\"" \
				"graphroot = \"/var/lib/containers/storage\"" \
				>/etc/containers/storage.conf' || return
	mb=$(in_root sh -c 'du -xsm / | cut -f 1')
	in_root mke2fs -q -F -t ext4 -O ^has_journal -d "$root" "$disk.new" \
		"$((mb + 300))M" && mv "$disk.new" "$disk"
	local status=$?
	in_root rm -rf "$root"
	unlock
	return "$status"
}

# guest_options DISK: set options, for run.sh and pair.sh; guests do not change the disk
guest_options() {
	options=(-m 2560M -f "$containers_dir/guest.sh"
		-q -drive
		-q "file=$work/$1,format=raw,if=none,id=system,cache=unsafe,snapshot=on"
		-q -device -q virtio-blk-pci,drive=system)
}
