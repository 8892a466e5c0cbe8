#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: packaging/rpm.sh [DIRECTORY]
#
# Builds the RPM packages in DIRECTORY, by default build/rpm, from a copy of the tree. Does
# not ask rpm whether what they need is installed: it may be there by another packager.

set -euo pipefail

case ${1-} in
-*)
	sed -n '/^# Usage/,/^$/s/^# \{0,1\}//p' "$0"
	exit
	;;
esac
top_dir=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^VERSION[[:space:]]*:= *//p' "$top_dir/Makefile")
dir=${1:-${RDMA_POST_BUILD:-$top_dir/build}/rpm}
"$top_dir/packaging/deb.sh" -s "$dir"
dir=$(cd "$dir" && pwd)
mkdir -p "$dir/SOURCES"
rm -r "$dir/rdma-post-$version/debian"
tar -C "$dir" --owner=0 --group=0 -czf "$dir/SOURCES/rdma-post-$version.tar.gz" \
	"rdma-post-$version"
rm -r "$dir/rdma-post-$version"
cp "$top_dir"/packaging/rpm/*.spec "$dir/SOURCES/"
rpmbuild -ba --nodeps --define "_topdir $dir" --define "_sourcedir $dir/SOURCES" \
	"$dir/SOURCES/rdma-post.spec"
rm -rf "$dir"/{BUILD,BUILDROOT}
ls "$dir"/RPMS/*/*.rpm
