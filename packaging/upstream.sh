#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: packaging/upstream.sh KERNEL
#
# Puts the module into KERNEL, the source of Linux 7.2 or later, as a part of the kernel:
# drivers/infiniband/ulp/rdma_post with Kconfig and Makefile, the interface's header, a page
# of documentation, and a section of MAINTAINERS. The module has no compat/ there and calls
# the kernel's functions by their names. Replaces the files of an earlier run.
# Needs spatch (Debian's package coccinelle).

set -euo pipefail

usage() { sed -n '/^# Usage/,/^$/s/^# \{0,1\}//p' "$0"; }

die() {
	echo "$0: $*" >&2
	exit 1
}

case ${1--h} in
-h | --help) usage && exit ;;
-*) usage >&2 && exit 2 ;;
esac
[ $# = 1 ] || { usage >&2 && exit 2; }
[ -e "$1/drivers/infiniband/ulp/Makefile" ] || die "$1 is no source of a kernel"
[ -e "$1/scripts/coccinelle/api/kmalloc_objs.cocci" ] || die "$1 is older than Linux 7.2"
command -v spatch >/dev/null || die "spatch is not installed"
kernel=$(cd "$1" && pwd)
top_dir=$(cd "$(dirname "$0")/.." && pwd)
parts=$top_dir/packaging/upstream
module=$kernel/drivers/infiniband/ulp/rdma_post
header=$kernel/include/uapi/rdma/rdma_post_abi.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Write the module's files, in their folders, to $work/rdma_post.
copy_module() {
	mkdir "$work/rdma_post"
	cd "$top_dir/kmod"
	find . -path ./compat -prune -o -name '*.[ch]' ! -name '*.mod.c' \
		-exec cp --parents -t "$work/rdma_post" {} +
	cd "$work/rdma_post"
	cp "$parts/Kconfig" .
	# shellcheck disable=SC2016
	sed -n '/^ifdef/q
		1p
		s/^obj-m := /obj-$(CONFIG_RDMA_POST) := /p
		s/^\(rdma_post-.*\)kmod\//\1/p
		s/^ccflags-y .*/ccflags-y += -I$(src)/p' "$top_dir/Kbuild" >Makefile
}

# Take compat/ and what only older kernels need out. newest.cocci does it for code, and sed
# for what spatch does not see or change: comments, macros, blank lines.
take_compat_out() {
	local left
	find . -name '*.[ch]' -exec sed -i '/^#include "compat\/compat.h"$/d
		s/RPOST_COMPAT_ACCESS_FLUSH/RPOST_ACCESS_FLUSH/' {} +
	spatch --very-quiet --in-place --no-show-diff --no-includes --include-headers \
		--smpl-spacing --sp-file "$parts/newest.cocci" --dir .
	sed -i '/^struct rpost_pin;$/i\
#define RPOST_ACCESS_FLUSH	(RPOST_ACCESS_FLUSH_GLOBAL | RPOST_ACCESS_FLUSH_PERSISTENT)\
' memory/memory.h
	sed -i '/^ \* @\(notifier: .*, if @armed$\|armed: \|unmapped: \)/d' memory/cache.h
	sed -i 's/^\(\/\* -* \)shared files /\1mappings /' memory/pin.c
	sed -i '/^\t\/\*$/{ N; /Before 6\.2 the driver pins/{ :more; N; /\*\/$/!b more; d } }' \
		post/any_memory.c
	# The layout of what newest.cocci has put in
	sed -i '/^}$/{ n; s/^\/\*/\n&/ }
		s/^\t       return /\t\treturn /
		s/^ *"rdma_post");$/\t\t\t\t\t      "rdma_post");/' memory/mr.c memory/watch.c
	left=$(grep -rniE 'rpost_compat|LINUX_VERSION_CODE|Before 6\.2' . || true)
	[ -z "$left" ] || die "newest.cocci leaves this:"$'\n'"$left"
}

# Allocate as the kernel wants it, by the kernel's own script.
modernise() {
	spatch --very-quiet -D patch --in-place --no-show-diff --no-includes --dir . \
		--sp-file "$kernel/scripts/coccinelle/api/kmalloc_objs.cocci"
}

# insert FILE BEFORE TEXT: put the text before the first line that matches, unless the file
# has the text's first line
insert() {
	local file=$kernel/$1 line
	! grep -qxF -e "${3%%$'\n'*}" "$file" || return 0
	line=$(grep -n -m 1 -e "$2" "$file") || die "$file has no line $2"
	sed -i "$((${line%%:*} - 1))r /dev/stdin" "$file" <<<"$3"
}

(copy_module)
(
	cd "$work/rdma_post"
	take_compat_out
	modernise
)
cp "$top_dir/uapi/rdma/rdma_post_abi.h" "$work/"
# The version is the kernel's, and the pages stay with the library.
sed -i '/^MODULE_VERSION/d' "$work/rdma_post/face/main.c"
find "$work" -name '*.[ch]' -exec \
	sed -i 's/Documentation\/\([a-z-]*\.rst\)/\1 of librdma_post/' {} +
rm -rf "$module"
cp -r "$work/rdma_post" "$module"
cp "$work/rdma_post_abi.h" "$header"
cp "$parts/rdma_post.rst" "$kernel/Documentation/infiniband/"

insert drivers/infiniband/Kconfig '/ulp/rtrs/Kconfig' \
	'source "drivers/infiniband/ulp/rdma_post/Kconfig"'
# shellcheck disable=SC2016
insert drivers/infiniband/ulp/Makefile ' rtrs/$' \
	$'obj-$(CONFIG_RDMA_POST)\t\t\t+= rdma_post/'
insert Documentation/infiniband/index.rst '^   sysfs$' '   rdma_post'
insert Documentation/userspace-api/ioctl/ioctl-number.rst '^0xC0 ' \
	"$(printf '%-71s%s' '0xBD  all    uapi/rdma/rdma_post_abi.h' '<mailto:linux-rdma@vger.kernel.org>')"
insert MAINTAINERS '^RDS - RELIABLE DATAGRAM' "$(cat "$parts/MAINTAINERS")"$'\n'
