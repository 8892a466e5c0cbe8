#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: packaging/deb.sh [-s] [-v VERSION] [DIRECTORY]
#
# Builds the Debian packages in DIRECTORY, by default build/deb, from a copy of the tree
# there. In a clone of git the copy has what git tracks or would track, otherwise all
# files but the products of builds.
#
#   -s           only make the source package's tree, DIRECTORY/rdma-post-VERSION
#   -v VERSION   the version of the packages and of the module, by default the Makefile's

set -euo pipefail

usage() { sed -n '/^# Usage/,/^$/s/^# \{0,1\}//p' "$0"; }

top_dir=$(cd "$(dirname "$0")/.." && pwd)
current=$(sed -n 's/^VERSION[[:space:]]*:= *//p' "$top_dir/Makefile")
version=$current source_only=''
while getopts hsv: opt; do
	case $opt in
	s) source_only=1 ;;
	v) version=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
dir=${1:-${RDMA_POST_BUILD:-$top_dir/build}/deb}
rm -rf "$dir"
mkdir -p "$dir/rdma-post-$version"
dir=$(cd "$dir" && pwd)
tree=$dir/rdma-post-$version

# Print the names of the tree's files, separated by NUL.
list_files() {
	cd "$top_dir"
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard |
			while IFS= read -r -d '' file; do
				[ ! -e "$file" ] || printf '%s\0' "$file"
			done
	else
		find . \( -path ./build -o -path ./.git -o -path "$dir" \) -prune -o \
			\( -type f -o -type l \) ! -name '*.o' ! -name '*.ko' ! -name '*.mod' \
			! -name '*.mod.c' ! -name '.*.cmd' ! -name Module.symvers \
			! -name modules.order -print0
	fi
}

# Write another version to the places that have it.
set_version() {
	cd "$tree"
	sed -i "s/^\(VERSION[[:space:]]*:= *\).*/\1$version/" Makefile
	sed -i "s/^\(PACKAGE_VERSION=\).*/\1\"$version\"/" dkms.conf
	sed -i "s/^\(MODULE_VERSION(\).*/\1\"$version\");/" kmod/main.c
	sed -i "1s/([^)]*)/($version)/" packaging/debian/changelog
}

list_files | tar -C "$top_dir" --null -T - -c | tar -C "$tree" -x
[ "$version" = "$current" ] || (set_version)
cp -r "$tree/packaging/debian" "$tree/debian"
[ -z "$source_only" ] || exit 0
(cd "$tree" && dpkg-buildpackage -us -uc)
rm -rf "$tree"
ls "$dir"/*.deb
