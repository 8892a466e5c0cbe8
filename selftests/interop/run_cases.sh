#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2034
#
# Usage: run_cases.sh system|rdma_post RESULTS [smoke|first|FUNCTION...]
#
# Runs the cases in the directory cases/ over one of the libraries, with the
# programs of $SUITE, and appends a line for each to the file RESULTS:
#   FUNCTION|PROGRAM|WHAT|LIBRARY|ok, failed or skip|why|seconds|tries
# Prints these lines, and the output of failed cases, as comments of TAP. A
# failed case is tried once more, and the last field shows it: programs and the
# emulated device sometimes lose a connection's last message, over either
# library.

here=$(cd "$(dirname "$0")" && pwd)
library=$1 results=$2
shift 2
all_pyverbs=
case " $* " in
'  ' | *' pyverbs '* | *' pyverbs_* '*) all_pyverbs=1 ;;
esac
release=${SUITE:-bookworm}
addr=10.0.0.1 addr6=fd00::1 dev=rxe0 limit=${LIMIT:-180}
list=$(mktemp)
keep=$here/keep
mkdir -p "$keep"

# shellcheck disable=SC1091
. "$here/lib.sh"
for file in "$here"/cases/*.sh; do
	releases=$release
	# shellcheck disable=SC1090
	. "$file"
done

# Over librdma_post, programs run as nobody, and may lock 8 MiB, the kernel's default.
# Cases whose programs need more raise the limit, or call as_root (lib.sh).
over='' as_user=''
if [ "$library" = rdma_post ]; then
	as_user='chroot --userspec=65534:65534 --groups= --skip-chdir /'
	over="$as_user $here/bin/rdma-post-run"
	ulimit -l 8192
fi

wanted() {
	local name=$1 marks=$2 pattern
	shift 2
	[ $# -gt 0 ] || return 0
	for pattern; do
		case " $marks " in
		*" $pattern "*) return 0 ;;
		esac
		# shellcheck disable=SC2254
		case $name in
		$pattern) return 0 ;;
		esac
	done
	return 1
}

now() { cut -d ' ' -f 1 /proc/uptime; }

show_output() {
	local file
	for file in "$tmp"/*; do
		[ -f "$file" ] || continue
		echo "# --- $1: ${file##*/}"
		tail -n "${VERBOSE:-40}" "$file" | cut -c 1-150 | cat -v | sed 's/^/# /'
	done
}

# Run the case: set result, why and seconds, and add one to tries.
try_case() {
	local start status
	tmp=$(mktemp -d) case=$name
	chmod 777 "$tmp"
	start=$(now)
	(
		trap kill_all EXIT
		set -e
		"$name"
	)
	status=$?
	why=
	[ ! -e "$tmp/.why" ] || read -r why <"$tmp/.why"
	# A "|" would end the field.
	why=$(printf '%s\n' "$why" | sed 's/|/ or /g')
	tries=$((tries + 1))
	case $status in
	0) result=ok ;;
	4) result=skip ;;
	*) result=failed why=${why:-exit status $status} ;;
	esac
	seconds=$(echo "$start $(now)" | awk '{ printf "%.1f", $2 - $1 }')
	echo "# $library $name: $result ${why:+($why) }in $seconds s"
	if [ "$result" = failed ] || [ -n "${VERBOSE-}" ]; then
		show_output "$library $name"
	fi
	rm -rf "$tmp"
}

n=0 seen='|'
while IFS='|' read -r name program what mark <&7; do
	n=$((n + 1))
	port=$((7600 + n))
	case $seen in
	*"|$program|"*) ;;
	*) seen=$seen$program'|' mark="$mark first" ;;
	esac
	wanted "$name" "$mark" "$@" || continue
	tries=0 most=2
	try_case
	while [ "$result" = failed ]; do
		case $why in
		*' came too early') most=3 ;;
		esac
		[ "$tries" -lt "$most" ] || break
		port=$((port + 200))
		echo "# $library $name: another try"
		try_case
	done
	echo "$name|$program|$what|$library|$result|$why|$seconds|$tries" >>"$results"
done 7<"$list"
rm "$list"
