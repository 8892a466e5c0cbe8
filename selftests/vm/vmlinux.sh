# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Takes the kernel out of its image. Sourced by fetch.sh and userland.sh.

# Extract the ELF vmlinux from a bzImage. It boots by PVH without the
# decompressor, which is slow under emulation. Offsets:
# Documentation/arch/x86/boot.rst.
extract_vmlinux() {
	local image=$1 out=$2 setup offset length
	number() { od -An -v -j "$1" -N "$2" -t "u$2" "$image" | tr -d ' '; }
	setup=$(number $((0x1f1)) 1)
	offset=$((($(number $((0x248)) 4)) + ((setup ? setup : 4) + 1) * 512))
	length=$(number $((0x24c)) 4)

	payload() {
		dd if="$image" bs=1M iflag=skip_bytes,count_bytes \
			skip="$offset" count="$1" status=none
	}
	# All formats except gzip end with the unpacked size.
	case $(payload 4 | od -An -t x1 | tr -d ' ') in
	fd377a58) payload $((length - 4)) | xz -dc ;;
	28b52ffd) payload $((length - 4)) | zstd -qdc ;;
	02214c18) payload $((length - 4)) | lz4 -qdc ;;
	1f8b*) payload "$length" | gzip -dc ;;
	*) die "$image: unknown compression of the kernel" ;;
	esac >"$out"
	readelf -n "$out" 2>/dev/null | grep Xen >/dev/null ||
		die "$image: no PVH entry"
}
