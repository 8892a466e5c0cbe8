#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/interop/interop.sh [options] [KERNEL...]
#
# Runs unmodified programs of Debian in guests: over the system's librdmacm
# and libibverbs, which shows that the case itself works, and over librdma_post.
# Prints TAP with one test for each case and library, and a line "program |
# system | rdma_post" for each program. By default runs all cases on 6.1, and a
# few on 6.12 and 7.2 (with trixie and sid all modules of pyverbs, too). Tries a
# failed case once more, and prints the number of tries; "# retried: ..." is a
# case that needed a second try over rdma_post only.
#
#   -q                 on 6.1 only the first case of each program
#   -s "RELEASE..."    programs of these of Debian's releases: bookworm, by default,
#                      trixie, sid
#   -c "FUNCTION..."   only these cases (patterns); their results are not
#                      compared with the documentation
#   -l LIBRARY         only system or only rdma_post
#   -v                 show what the programs print
#   -I                 count instructions, as run.sh -I does: times are the same in all runs
#   -t SECONDS         time limit of a program, 180 by default
#   -u                 update the tables in Documentation/program-cases.rst, of those that
#                      have one there; with trixie and sid those of 6.12 and 7.2
#                      have the rows that differ from 6.1. Update their summary in
#                      programs.rst, too
#
# The file "expected" lists the cases that are known to fail, with the reason;
# they count as skipped as long as they fail. The exit status is 1 if another
# case fails, if one of these passes, or if the results differ from
# Documentation/program-cases.rst.

set -euo pipefail
. "$(dirname "$0")/../vm/lib.sh"

here=$top_dir/selftests/interop
out=$build_dir/interop
cases_rst=$top_dir/Documentation/program-cases.rst
cases='' libraries='system rdma_post' verbose='' limit=180 update='' quick='' count=()
suites=bookworm
while getopts hqs:c:l:vIt:u opt; do
	case $opt in
	q) quick=1 ;;
	s) suites=$OPTARG ;;
	c) cases=$OPTARG ;;
	l) libraries=$OPTARG ;;
	v) verbose=60 ;;
	I) count=(-I) ;;
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
	local dir=$out/suite valkey
	rm -rf "$dir"
	mkdir -p "$dir"/{bin,lib}
	cp -r "$here"/{cases,lib.sh,run_cases.sh,guest.sh} \
		"$here"/{adios2_sst,pyverbs_tests,torch_collectives}.py \
		"$top_dir/examples/hello_pyverbs.py" "$dir/"
	make -s -C "$top_dir" lib >&2
	cp "$build_dir/bin/rdma-post-run" "$dir/bin/"
	cp -a "$build_dir"/lib/{rdma_post,librdma_post.so*} "$dir/lib/"
	make -s -C "$here" OUT="$dir" >&2
	if needs_valkey; then
		valkey=$("$here/build.sh")
		cp "$valkey"/valkey-* "$dir/bin/"
	fi
}

# Does a pattern of -c match a case of Valkey's, or its marks?
needs_valkey() {
	local name pattern patterns
	[ -n "$cases" ] || return 0
	read -ra patterns <<<"$cases"
	for name in smoke first $(sed -n 's/^case_ \([^ ]*\) .*/\1/p' "$here/cases/valkey.sh"); do
		for pattern in "${patterns[@]}"; do
			# shellcheck disable=SC2053
			[[ $name != $pattern ]] || return 0
		done
	done
	return 1
}

# run_guest SUITE KERNEL NAME: write results-NAME
run_guest() {
	local suite=$1 kernel=$2 name=$3 status=0 only=$cases
	case $cases$kernel in
	6.1) only=${quick:+first} ;;
	6.12 | 7.2)
		only=smoke
		[ "$suite" = bookworm ] || only='smoke pyverbs'
		;;
	esac
	set -f
	# shellcheck disable=SC2086
	set -- $only
	set +f
	# A user may have as much as on a host of 8 GB: Valkey with 100 clients has 530 MB.
	"$vm_dir/run.sh" "${count[@]}" -k "$kernel" -p "odp=1 max_user_bytes=$((1 << 30))" \
		-m 2G -t 7200 -o "$build_dir/vm/interop.$kernel" \
		-f "$out/suite:/root/interop" -q -drive -q \
		"file=$image,format=raw,if=none,id=programs,readonly=on" \
		-q -device -q virtio-blk-pci,drive=programs \
		-- env LIMIT="$limit" VERBOSE="$verbose" SUITE="$suite" \
		interop/guest.sh "$libraries" "$@" || status=$?
	cp "$build_dir/vm/interop.$kernel/out/results" "$out/results-$name" \
		2>/dev/null || : >"$out/results-$name"
	return "$status"
}

# The documentation's name for the results with these programs
title() {
	if [ "$1" = bookworm ]; then
		echo "$2"
	else
		echo "$1 on $2"
	fi
}

# Print the results with this title in the documentation.
committed() {
	awk -v title="$1" '/^\.\. end / { on = 0 }
		on
		$0 == ".. begin results of " title { on = 1 }' "$cases_rst"
}

# compare_table SUITE KERNEL NAME
compare_table() {
	local suite=$1 kernel=$2 name=$3 title
	title=$(title "$suite" "$kernel")
	awk -v suite="$suite" -v kernel="$kernel" -f "$here/table.awk" "$here/expected" \
		"$out/results-$name" >"$out/table-$name"
	if [ "$suite" != bookworm ] && [ "$kernel" != 6.1 ]; then
		committed "$(title "$suite" 6.1)" | grep '^   "' >"$out/rows-6.1"
		grep -Fxv -f "$out/rows-6.1" "$out/table-$name" >"$out/table"
		mv "$out/table" "$out/table-$name"
	fi
	if [ -n "$update" ]; then
		{
			echo ".. begin results of $title"
			cat "$out/table-$name"
		} | awk -f "$top_dir/selftests/tools/replace.awk" - "$cases_rst" \
			>"$out/program-cases.rst"
		cp "$out/program-cases.rst" "$cases_rst"
	fi
	committed "$title" >"$out/committed-$name"
	if [ "$quick$kernel" = 16.1 ]; then
		# Print the rows that the document does not have.
		if grep '^   "' "$out/table-$name" |
			grep -Fxv -f "$out/committed-$name" | sed 's/^/# /'; then
			return 1
		fi
		return 0
	fi
	diff -u --label "Documentation/program-cases.rst" --label "this run on $title" \
		"$out/committed-$name" "$out/table-$name" | sed 's/^/# /'
	return "${PIPESTATUS[0]}"
}

# run_on SUITE KERNEL
run_on() {
	local suite=$1 kernel=$2 name=$2 status=0 start=$EPOCHREALTIME
	[ "$suite" = bookworm ] || name=$suite.$kernel
	run_guest "$suite" "$kernel" "$name" || status=$?
	awk -v suite="$suite" -v kernel="$kernel" -v name="$name" -v n="$n" \
		-f "$here/tap.awk" "$here/expected" "$out/results-$name" || failed=1
	n=$((n + $(wc -l <"$out/results-$name") + 1))
	if [ "$status" = 0 ] && [ -s "$out/results-$name" ]; then
		echo "ok $n interop.$name.guest"
	else
		echo "not ok $n interop.$name.guest # exit status $status"
		failed=1
	fi
	echo "# $name: all cases in $(seconds_since "$start") s"
	if [ -n "$cases" ] || [ "$libraries" != 'system rdma_post' ]; then
		return
	fi
	if ! grep -qx "\.\. begin results of $(title "$suite" "$kernel")" "$cases_rst"; then
		echo "# $name: Documentation/program-cases.rst has no table of these results"
		return
	fi
	n=$((n + 1))
	if compare_table "$suite" "$kernel" "$name"; then
		echo "ok $n interop.$name.documentation"
	else
		echo "not ok $n interop.$name.documentation # see selftests/interop/interop.sh -h"
		failed=1
	fi
}

make_suite
failed=0 n=0
echo "TAP version 13"
for suite in $suites; do
	image=$("$here/fetch.sh" "$suite")
	for kernel; do
		"$vm_dir/kmod.sh" "$kernel" >&2
		run_on "$suite" "$kernel"
	done
done
[ -z "$update" ] || make -s -C "$top_dir/Documentation" programs >&2
echo "1..$n"
exit "$failed"
