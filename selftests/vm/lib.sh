# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Common functions of the guest rig; sourced by the other scripts.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top_dir=$(cd "$vm_dir/../.." && pwd)
cache_dir=${RDMA_POST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdma_post}
build_dir=${RDMA_POST_BUILD:-$top_dir/build}
prog=$(basename "$0" .sh)

# ccache has no base directory here: with one, dependency files name their targets by other
# paths than the makefiles do.
[ ! -d /usr/lib/ccache ] || PATH=/usr/lib/ccache:$PATH
export CCACHE_DIR=$cache_dir/ccache CCACHE_NOHASHDIR=1

# depmod, modprobe, ip and rdma live in the sbin directories.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf 'vm: %s\n' "$*" >&2; }

die() {
	printf 'vm: %s: %s\n' "$prog" "$*" >&2
	exit "${die_status:-1}"
}

# Print the comment block that heads the calling script, as its help.
usage() {
	sed -n '/^# Usage/,/^[^#]/s/^# \{0,1\}//p' "$0"
}

# Print the version that the Makefile has.
release_version() { sed -n 's/^VERSION[[:space:]]*:= *//p' "$top_dir/Makefile"; }

# lock FILE: take an exclusive lock, until unlock or the end of the shell
lock() {
	mkdir -p "$(dirname "$1")"
	exec {lock_fd}>"$1"
	if ! flock -n "$lock_fd"; then
		say "waiting for $1"
		flock "$lock_fd"
	fi
}

unlock() { exec {lock_fd}>&-; }

# make_once WHAT LOCK FILE COMMAND...: run the command, which makes the file, under a lock of
# the cache, unless the file is there
make_once() {
	local start
	[ ! -e "$3" ] || return 0
	lock "$cache_dir/locks/$2"
	if [ ! -e "$3" ]; then
		start=$EPOCHREALTIME
		"${@:4}" >&2
		say "$1 made in $(seconds_since "$start") s"
	fi
	unlock
}

# fill DIRECTORY COMMAND...: make a directory NAME-HASH in the place of other NAME-*: the
# command fills one, its last argument
fill() {
	rm -rf "${1%-*}"-*
	mkdir -p "$1.tmp"
	"${@:2}" "$1.tmp"
	mv "$1.tmp" "$1"
}

have() { command -v "$1" >/dev/null 2>&1; }

need() {
	local tool
	for tool; do
		have "$tool" || die "$tool is not installed: run selftests/vm/deps.sh"
	done
}

# need_room DIRECTORY MB
need_room() {
	local free
	mkdir -p "$1"
	free=$(df --output=avail -BM "$1" | tr -dc '0-9')
	[ "$free" -ge "$2" ] || die "no space left in $1 ($free MB free)"
}

seconds_since() {
	local now=${EPOCHREALTIME/[.,]/} then=${1/[.,]/}
	printf '%d.%d' $(((now - then) / 1000000)) $(((now - then) / 100000 % 10))
}

# build_all TARGET...: make these
build_all() {
	say "building $*; the first time takes about a minute"
	make -s -j"$(nproc)" -C "$top_dir" BUILD="$build_dir" "$@"
}

# names_in MAKEFILE VARIABLE: print the names in one of its lists
names_in() {
	make -s --no-print-directory -f "$1" --eval "names: ; @echo \$($2)" names
}
