#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: packaging/deb.sh [-s] [-v VERSION] [DIRECTORY]
#
# Builds the Debian packages in DIRECTORY, by default build/deb, from a copy of the tree
# there. In a clone of git the copy has what git tracks or would track, otherwise all
# files but the products of builds. What this script left in DIRECTORY before is removed;
# any other directory must be empty.
#
#   -s           only make the source package's tree, DIRECTORY/rdma-post-VERSION
#   -v VERSION   the version of the packages and of the module, by default the Makefile's

set -euo pipefail

usage() { sed -n '/^# Usage/,/^$/s/^# \{0,1\}//p' "$0"; }

top_dir=$(cd "$(dirname "$0")/.." && pwd -P)
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
mkdir -p "$dir"
dir=$(cd "$dir" && pwd -P)
tree=$dir/rdma-post-$version
mark=$dir/.made-by-rdma-post
if [ ! -e "$mark" ] && [ -n "$(ls -A "$dir")" ]; then
	echo "$0: $dir has files that are not of this script: name another directory" >&2
	exit 1
fi
find "$dir" -mindepth 1 ! -path "$mark" -delete
touch "$mark"
mkdir "$tree"

# Print the names of the tree's files, separated by NUL.
list_files() {
	local prefix file
	cd "$top_dir"
	if prefix=$(git rev-parse --show-prefix 2>/dev/null) && [ -z "$prefix" ]; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . \( -path ./build -o -path ./.git \) -prune -o \
			\( -type f -o -type l \) ! -name '*.o' ! -name '*.ko' ! -name '*.mod' \
			! -name '*.mod.c' ! -name '.*.cmd' ! -name Module.symvers \
			! -name modules.order -printf '%P\0'
	fi | while IFS= read -r -d '' file; do
		# Without what has been deleted, and without DIRECTORY.
		[[ ! -e $file || $top_dir/$file = "$dir"/* ]] || printf '%s\0' "$file"
	done
}

# Write another version to the places that have it.
set_version() {
	cd "$tree"
	sed -i "s/^\(VERSION[[:space:]]*:= *\).*/\1$version/" Makefile
	sed -i "s/^\(PACKAGE_VERSION=\).*/\1\"$version\"/" dkms.conf
	sed -i "s/^\(MODULE_VERSION(\).*/\1\"$version\");/" kmod/face/main.c
	sed -i "1s/([^)]*)/($version)/" packaging/debian/changelog
}

list_files | tar -C "$top_dir" --null -T - -c | tar -C "$tree" -x
[ "$version" = "$current" ] || (set_version)
cp -r "$tree/packaging/debian" "$tree/debian"
[ -z "$source_only" ] || exit 0
(cd "$tree" && dpkg-buildpackage -us -uc)
rm -rf "$tree"
ls "$dir"/*.deb
