#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: packaging/rpm.sh [DIRECTORY]
#
# Builds the RPM packages in DIRECTORY, by default build/rpm, from a copy of the tree. Does
# not ask rpm whether what they need is installed: it may be there by another packager.
# DIRECTORY must be empty, or made by this script, which removes what is there.

set -euo pipefail

usage() { sed -n '/^# Usage/,/^$/s/^# \{0,1\}//p' "$0"; }

case ${1-} in
-h | --help) usage && exit ;;
-*) usage >&2 && exit 2 ;;
esac
top_dir=$(cd "$(dirname "$0")/.." && pwd -P)
version=$(sed -n 's/^VERSION[[:space:]]*:= *//p' "$top_dir/Makefile")
dir=${1:-${RDMA_POST_BUILD:-$top_dir/build}/rpm}
"$top_dir/packaging/deb.sh" -s "$dir"
dir=$(cd "$dir" && pwd)
mkdir -p "$dir/SOURCES"
rm -r "$dir/rdma-post-$version/debian"
# The same files make the same archive.
date=$(sed -n 's/^ -- .*>  //p' "$top_dir/packaging/debian/changelog" | head -n 1)
tar -C "$dir" --sort=name --mtime="$date" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX -c "rdma-post-$version" |
	gzip -n >"$dir/SOURCES/rdma-post-$version.tar.gz"
rm -r "$dir/rdma-post-$version"
cp "$top_dir"/packaging/rpm/*.spec "$dir/SOURCES/"
rpmbuild -ba --nodeps --define "_topdir $dir" --define "_sourcedir $dir/SOURCES" \
	"$dir/SOURCES/rdma-post.spec"
rm -rf "$dir"/{BUILD,BUILDROOT}
ls "$dir"/RPMS/*/*.rpm
