# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The guest's initramfs: a base that is cached for each kernel, and the files
# that a run adds to it. Sourced by run.sh.

# Programs of the base: the first list is required, the second optional.
vm_programs="busybox dash ip rdma tc setpriv"
vm_programs_optional="rping udaddy ucmatose mckey riostream rstream cmtime
	ibv_devices ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ibv_srq_pingpong
	ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_send_lat ib_send_bw
	strace ethtool mke2fs"

vm_modules="virtio_pci virtio_console virtio_net virtio_rng ib_uverbs rdma_ucm
	rdma_cm rdma_rxe siw crc32_generic crc32c_generic dummy veth sch_netem 8021q
	ib_umad virtio_blk ext4 brd"
# The guest of shell.sh loads these for its tree.
vm_modules_optional="9pnet_virtio 9p"

# Print a path as it is in the guest, where /bin is a link to /usr/bin.
guest_path() {
	case $1 in
	/bin/* | /sbin/* | /lib/* | /lib32/* | /lib64/*) printf '/usr%s\n' "$1" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

# put STAGE SRC DEST: copy a file or directory into a stage, following symlinks
put() {
	local stage=$1 src=$2 dest
	dest=$stage$(guest_path "$3")
	if [ -d "$src" ]; then
		mkdir -p "$dest"
		cp -aL "$src/." "$dest/"
	else
		mkdir -p "${dest%/*}"
		cp -pL "$src" "$dest"
	fi
}

# put_needed STAGE: copy the libraries that the ELF files of a stage need, unless the base
# or the stage has them
put_needed() {
	local stage=$1 class file
	needed_in "$stage" | while read -r class file; do
		case $class in
		elf32) put_libraries_32 "$stage" "$file" ;;
		*) put_libraries "$stage" "$file" ;;
		esac
	done
}

# Print class and name of an ELF file for each library that is missing. One call of
# objdump for all files, since most lack nothing. What the base has needs nothing more.
needed_in() {
	local dir=/usr/lib/x86_64-linux-gnu
	{
		{
			cat "${base_list:-/dev/null}"
			find "$1$dir" -printf "$dir/%P\n" 2>/dev/null || true
		} | sed -n "s|^$dir/\([^/]*\)$|HAVE \1|p"
		# It fails for scripts.
		find "$1" -type f -size +3 -print0 | xargs -0 -r objdump -p 2>/dev/null || true
	} | awk '
		$1 == "HAVE" { seen["elf64" $2] }
		/:     file format / {
			class = substr($NF, 1, 5)
			file = $0
			sub(/:     file format .*/, "", file)
		}
		$1 == "NEEDED" && !((class $2) in seen) {
			seen[class $2]
			print class, file
		}'
}

# Copy the libraries of an ELF file, which the host's loader finds on the host
# or in the project's build, unless the base has them.
put_libraries() {
	local stage=$1 lib dest
	{ LD_LIBRARY_PATH=$build_dir/lib ldd "$2" 2>/dev/null || true; } |
		sed -nE 's/.*=> (\/[^ ]+) .*|^\s*(\/[^ ]+) .*/\1\2/p' |
		while read -r lib; do
			case $lib in
			/lib* | /usr/lib*) dest=$(guest_path "$lib") ;;
			# The guest's loader does not look in other directories.
			*) dest=/usr/lib/x86_64-linux-gnu/${lib##*/} ;;
			esac
			[ ! -e "$stage$dest" ] || continue
			! grep -qxF "$dest" "${base_list:-/dev/null}" || continue
			mkdir -p "$stage$(dirname "$dest")"
			cp -pL "$lib" "$stage$dest"
		done
}

# The same for 32-bit files, without ldd: some hosts cannot run the 32-bit
# loader.
put_libraries_32() {
	local stage=$1 lib dest
	objdump -p "$2" | awk '$1 == "NEEDED" { print $2 }' | while read -r lib; do
		dest=/usr/lib32/$lib
		# 32-bit programs name their loader by this path.
		[ "$lib" != ld-linux.so.2 ] || dest=/usr/lib/$lib
		# The tests set the path of the project's library.
		[[ $lib != librdma_post.* && ! -e $stage$dest ]] || continue
		mkdir -p "$stage${dest%/*}"
		cp -pL "/usr/lib32/$lib" "$stage$dest"
		put_libraries_32 "$stage" "$stage$dest"
	done
}

# The same files make the same archive, bit by bit: dates and inode numbers are not in it.
pack() {
	(
		cd "$1" || exit
		find . -exec touch -h -d @0 {} +
		find . -mindepth 1 -print0 | LC_ALL=C sort -z |
			cpio -o -0 -H newc --quiet --reproducible -R 0:0
	)
}

base_programs() {
	local name optional
	for name in $vm_programs; do
		command -v "$name" || die "$name is not installed: run selftests/vm/deps.sh"
	done
	for optional in $vm_programs_optional; do
		command -v "$optional" || true
	done
}

base_files() {
	local dir=/usr/lib/x86_64-linux-gnu
	# pthread_exit() loads libgcc_s, and libibverbs loads providers.
	ls -d /lib/x86_64-linux-gnu/libgcc_s.so.1 "$dir"/libibverbs/librxe-*.so \
		"$dir"/libibverbs/libsiw-*.so /etc/libibverbs.d/rxe.driver \
		/etc/libibverbs.d/siw.driver /etc/services /etc/protocols 2>/dev/null ||
		true
}

put_modules() {
	local stage=$1 root=$2 release=$3 mod file out
	for mod in $vm_modules $vm_modules_optional; do
		modprobe -d "$root" --set-version "$release" --show-depends "$mod" \
			2>/dev/null || true
	done | awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
		file=$(realpath -s "$file")
		out=$stage/usr/lib/modules/${file##*/lib/modules/}
		out=${out%.[gxz][zs]*}
		mkdir -p "$(dirname "$out")"
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -qdc "$file" ;;
		*.gz) gzip -dc "$file" ;;
		*) cat "$file" ;;
		esac >"$out"
		strip --strip-debug "$out"
	done
	depmod -b "$stage/usr" "$release" 2>/dev/null
}

put_system_files() {
	local stage=$1
	printf '%s\n' root:x:0:0:root:/root:/bin/sh \
		nobody:x:65534:65534:nobody:/tmp:/bin/sh >"$stage/etc/passwd"
	printf '%s\n' root:x:0: nogroup:x:65534: >"$stage/etc/group"
	printf '%s\n' '127.0.0.1 localhost' '::1 localhost' >"$stage/etc/hosts"
	printf '%s\n' 'proc /proc proc' 'sysfs /sys sysfs' 'dev /dev devtmpfs' \
		'debugfs /sys/kernel/debug debugfs' \
		'tracefs /sys/kernel/tracing tracefs' \
		'cgroup2 /sys/fs/cgroup cgroup2' >"$stage/etc/fstab"
	printf '%s\n' 'hosts: files' 'passwd: files' >"$stage/etc/nsswitch.conf"
}

build_base() {
	local kernel=$1 release=$2 out=$3 stage=$3.stage file
	rm -rf "$stage"
	mkdir -p "$stage"/{dev,proc,sys,tmp,run,root,vm,etc,out} \
		"$stage"/usr/{bin,sbin,lib,lib64}
	chmod 1777 "$stage/tmp"
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$stage/"
	for file in $(base_programs); do
		put "$stage" "$file" "$file"
	done
	for file in $(base_files); do
		put "$stage" "$file" "$file"
	done
	put_needed "$stage"
	busybox --list | while read -r file; do
		[ -e "$stage/usr/bin/$file" ] || [ -e "$stage/usr/sbin/$file" ] ||
			ln -s busybox "$stage/usr/bin/$file"
	done
	# The kernel asks for modules by this name.
	ln -sf ../bin/busybox "$stage/usr/sbin/modprobe"
	# busybox's shell would run its own ip and tc in place of the real ones.
	ln -sf dash "$stage/usr/bin/sh"
	put_system_files "$stage"
	put_modules "$stage" "$cache_dir/kernels/$kernel/root" "$release"
	(cd "$stage" && find . -type f | sed 's/^\.//') >"$out.list"
	pack "$stage" >"$out.tmp"
	mv "$out.tmp" "$out"
	rm -rf "$stage"
}

# Set base_cpio and base_list; build them if a tool or the kernel has changed.
base_initramfs() {
	local kernel=$1 release=$2 key
	# shellcheck disable=SC2046
	key=$({
		cat "$vm_dir/initramfs.sh" "$cache_dir/kernels/$kernel/release"
		# Debug kernels with other options have the same release.
		readlink -f "$cache_dir/kernels/$kernel"
		stat -Lc '%n %s %Y' $(base_programs) $(base_files)
	} | sha256sum | cut -c1-12)
	base_cpio=$cache_dir/initramfs/$kernel-$key.cpio
	base_list=$base_cpio.list
	# Another tree deletes those that nobody has touched for an hour.
	! touch -c "$base_cpio" "$base_list" || [ ! -e "$base_cpio" ] || return 0
	lock "$cache_dir/locks/initramfs-$kernel"
	if [ ! -e "$base_cpio" ]; then
		say "making the base initramfs for $kernel"
		mkdir -p "$cache_dir/initramfs"
		# Another run may be about to read the last one.
		find "$cache_dir/initramfs" -mmin +60 \
			-name "$kernel-????????????.cpio*" -prune -exec rm -rf {} +
		base_list='' build_base "$kernel" "$release" "$base_cpio"
	fi
	unlock
}
