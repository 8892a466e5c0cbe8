#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/interop/interop.sh [options] [KERNEL...]
#
# Runs unmodified programs of Debian in guests: over the system's librdmacm
# and libibverbs, which shows that the case itself works, and over librdma_post.
# Prints TAP with one test for each case and library, and a line "program |
# system | rdma_post" for each program. By default runs all cases on 6.1, and a
# few on 6.12 and 7.2. Tries a failed case once more, and prints the number of
# tries; "# retried: ..." is a case that needed a second try over rdma_post
# only.
#
#   -q                 on 6.1 only the first case of each program
#   -s SUITE           programs of trixie or sid, by default of bookworm; give -c,
#                      as not all cases can run
#   -c "FUNCTION..."   only these cases (patterns); their results are not
#                      compared with the documentation
#   -l LIBRARY         only system or only rdma_post
#   -v                 show what the programs print
#   -t SECONDS         time limit of a program, 180 by default
#   -u                 update the tables in Documentation/programs.rst
#
# The file "expected" lists the cases that are known to fail, with the reason;
# they count as skipped as long as they fail. The exit status is 1 if another
# case fails, if one of these passes, or if the results differ from
# Documentation/programs.rst.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"

here=$top_dir/selftests/interop
out=$build_dir/interop
programs_rst=$top_dir/Documentation/programs.rst
cases='' libraries='system rdma_post' verbose='' limit=180 update='' quick=''
suite=bookworm
while getopts hqs:c:l:vt:u opt; do
	case $opt in
	q) quick=1 ;;
	s) suite=$OPTARG ;;
	c) cases=$OPTARG ;;
	l) libraries=$OPTARG ;;
	v) verbose=60 ;;
	t) limit=$OPTARG ;;
	u) update=1 ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 6.1 6.12 7.2
[ -z "$update" ] || [ -z "$quick" ] || die "-u takes all cases, and -q does not run them"

# Make the directory that is /root/interop in the guest.
make_suite() {
	local dir=$out/suite
	rm -rf "$dir"
	mkdir -p "$dir"/{bin,lib}
	cp -r "$here"/{cases,lib.sh,run_cases.sh,guest.sh} "$dir/"
	make -s -C "$top_dir" lib >&2
	cp "$build_dir/bin/rdma-post-run" "$dir/bin/"
	cp -a "$build_dir"/lib/{rdma_post,librdma_post.so*} "$dir/lib/"
	make -s -C "$here" OUT="$dir" >&2
}

# run_guest KERNEL: write results-KERNEL and output-KERNEL
run_guest() {
	local kernel=$1 status=0 only=$cases
	case $cases$kernel in
	6.1) only=${quick:+first} ;;
	6.12 | 7.2) only=smoke ;;
	esac
	set -f
	# shellcheck disable=SC2086
	set -- $only
	set +f
	"$vm_dir/run.sh" -k "$kernel" -p odp=1 -m 2G -t 7200 -o "$build_dir/vm/interop.$kernel" \
		-f "$out/suite:/root/interop" -q -drive -q \
		"file=$image,format=raw,if=none,id=programs,readonly=on" \
		-q -device -q virtio-blk-pci,drive=programs \
		-- env LIMIT="$limit" VERBOSE="$verbose" \
		interop/guest.sh "$libraries" "$@" || status=$?
	cp "$build_dir/vm/interop.$kernel/out/results" "$out/results-$kernel" \
		2>/dev/null || : >"$out/results-$kernel"
	return "$status"
}

compare_table() {
	local kernel=$1
	awk -v kernel="$kernel" -f "$here/table.awk" "$here/expected" \
		"$out/results-$kernel" >"$out/table-$kernel"
	if [ -n "$update" ]; then
		awk -v kernel="$kernel" -v new="$out/table-$kernel" \
			-f "$here/replace.awk" "$programs_rst" >"$out/programs.rst"
		cp "$out/programs.rst" "$programs_rst"
	fi
	awk -v kernel="$kernel" '$0 == ".. results of " kernel { on = 1; next }
		/^\.\. end of results/ { on = 0 }
		on' "$programs_rst" >"$out/committed-$kernel"
	if [ "$quick$kernel" = 16.1 ]; then
		# Print the rows that the document does not have.
		if grep '^   "' "$out/table-$kernel" |
			grep -Fxv -f "$out/committed-$kernel" | sed 's/^/# /'; then
			return 1
		fi
		return 0
	fi
	diff -u --label "Documentation/programs.rst" --label "this run on $kernel" \
		"$out/committed-$kernel" "$out/table-$kernel" | sed 's/^/# /'
	return "${PIPESTATUS[0]}"
}

image=$("$here/fetch.sh" "$suite")
make_suite
failed=0 n=0
echo "TAP version 13"
for kernel; do
	"$vm_dir/kmod.sh" "$kernel" >&2
	status=0
	run_guest "$kernel" || status=$?
	awk -v kernel="$kernel" -v n="$n" -f "$here/tap.awk" "$here/expected" \
		"$out/results-$kernel" || failed=1
	n=$((n + $(wc -l <"$out/results-$kernel") + 1))
	if [ "$status" = 0 ] && [ -s "$out/results-$kernel" ]; then
		echo "ok $n interop.$kernel.guest"
	else
		echo "not ok $n interop.$kernel.guest # exit status $status"
		failed=1
	fi
	if [ -n "$cases" ] || [ "$libraries $suite" != 'system rdma_post bookworm' ]; then
		continue
	fi
	n=$((n + 1))
	if compare_table "$kernel"; then
		echo "ok $n interop.$kernel.documentation"
	else
		echo "not ok $n interop.$kernel.documentation # see selftests/interop/interop.sh -h"
		failed=1
	fi
done
echo "1..$n"
exit "$failed"
