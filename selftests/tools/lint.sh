#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/lint.sh [-c]
#
# Static checks, as TAP: checkpatch --strict, sparse, coccinelle with the kernel's
# scripts, clang's analyzer, kernel-doc, gcc and clang warnings, shellcheck.  Fails
# if one of them has anything to say.  (kmod.sh builds the module with W=1.)
#
#   -c   only files that have changed since the branch's upstream, or else in the
#        last commit, and without what needs minutes: coccinelle and the analyzer

# The checks are functions that check calls by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir" || exit 1

changed=''
case ${1-} in
'') ;;
-c) changed=1 ;;
*) usage >&2 && exit 2 ;;
esac

"$vm_dir/deps.sh" && "$vm_dir/fetch.sh" kselftest 6.1 || exit 1
[ -n "$changed" ] || "$vm_dir/fetch.sh" source-7.2 || exit 1
scripts=$cache_dir/scripts
headers=$(echo "$cache_dir"/kernels/6.1/root/usr/src/linux-headers-*-amd64)
out=$build_dir/lint
mkdir -p "$out"
failed=0 n=0

# check NAME COMMAND...: one test; passes if the command succeeds in silence
check() {
	local name=$1 ok=ok
	shift
	n=$((n + 1))
	if ! "$@" >"$out/$name.log" 2>&1 || [ -s "$out/$name.log" ]; then
		ok='not ok'
		failed=1
		sed 's/^/# /' "$out/$name.log" | head -n 40
	fi
	echo "$ok $n lint.$name"
}

# files PATHSPEC...: those that are to be looked at
files() {
	local base
	if [ -z "$changed" ]; then
		git ls-files "$@"
		return
	fi
	base=$(git merge-base HEAD '@{upstream}' 2>/dev/null)
	[ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ] ||
		base=$(git rev-parse -q --verify HEAD~1 || git rev-parse HEAD)
	git diff --name-only --diff-filter=d "$base" -- "$@"
	git ls-files --others --exclude-standard "$@"
}

# Locks are described in the kernel-doc above their struct, which checkpatch
# does not see.  Tracepoints have a layout of their own.  The interface's header
# is for programs too, and they have no BIT().  The poller of send rings yields, to
# be polite; it does not rely on it.
checkpatch() {
	local ignore=UNCOMMENTED_DEFINITION
	case $1 in
	*/trace.h) ignore+=,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT ;;
	kmod/sring.c) ignore+=,YIELD ;;
	kmod/compat/* | */rdmasim/compat.h) ignore+=,LINUX_VERSION_CODE,CONSTANT_COMPARISON ;;
	esac
	perl "$scripts/checkpatch.pl" --strict --no-tree --terse --no-summary \
		--no-signoff --max-line-length=100 --ignore "$ignore" -f "$1"
}

checkpatch_all() {
	local file
	for file in $(files 'kmod/*.[ch]' 'uapi/*.h' 'selftests/rdmasim/*.[ch]'); do
		checkpatch "$file"
	done
}

# Nothing but compat/ may know a version.
versions() {
	! grep -rn LINUX_VERSION_CODE kmod --include='*.[ch]' --exclude-dir=compat
}

sparse_all() {
	[ -n "$(files kmod uapi Kbuild)" ] || return 0
	rm -rf "$out/kmod" && mkdir -p "$out/kmod" &&
		cp -r Kbuild kmod uapi "$out/kmod" &&
		make -s -C "$headers" M="$out/kmod" C=2 W=1 modules 2>&1 |
		grep -E ': (warning|error):' | grep -v "$headers/"
	true
}

# One of coccinelle's scripts, with the options that it asks for.
cocci_script() {
	local options
	read -ra options < <(sed -n 's|^// Options: *||p' "$1")
	spatch --very-quiet -D report --no-show-diff "${options[@]}" \
		--cocci-file "$1" --dir kmod 2>&1 || echo "$1: spatch failed"
}
export -f cocci_script

# Left out: badzero and check_bq27xxx_data need an OCaml compiler, kmalloc_objs
# only makes patches (to kmalloc_obj(), which 6.1 does not have).
coccinelle() {
	find "$cache_dir/source/7.2/scripts/coccinelle" -name '*.cocci' |
		grep -vE '/(badzero|check_bq27xxx_data|kmalloc_objs)\.cocci$' |
		xargs -P "$(nproc)" -I{} bash -c 'cocci_script {}' |
		# What it has to say of the scripts themselves.
		grep -vE '^warning: line [0-9]+: should .* be a metavariable' || true
}

# clang's analyzer with what it understands of gcc's command for this file, which
# sparse_all has left; what it says of the kernel's headers is not for us.  It
# does not see what is initialized by copy_from_user() or where ERR_PTR() is
# returned, nor that kref_put() need not be the last: those checks are left out.
analyze_module() {
	local words i checker args=()
	read -ra words < <(sed -n "1{s/^[^=]*= gcc //;s/ *;.*//;s/'//g;p}" "$1")
	for ((i = 0; i < ${#words[@]}; i++)); do
		case ${words[i]} in
		-include) args+=("${words[i]}" "${words[++i]}") ;;
		-Wp,*) ;;
		-[DI]* | -nostdinc | -std=* | -m64 | -mcmodel=* | -mno-* | -fshort-wchar)
			args+=("${words[i]}")
			;;
		esac
	done
	for checker in unix.Malloc core.CallAndMessage core.uninitialized \
		core.UndefinedBinaryOperatorResult; do
		args+=(-Xclang "-analyzer-disable-checker=$checker")
	done
	cd "$2" && clang --analyze -Xclang -analyzer-output=text \
		-Wno-everything -fno-builtin -O2 "${args[@]}" \
		-o /dev/null "${words[-1]}" 2>&1 |
		grep -A 30 -P '^[^ ]*/kmod/[^ ]*: (warning|error|fatal error):(?!.*undefined pointer)'
	[ "${PIPESTATUS[0]}" = 0 ] || echo "${words[-1]}: clang failed"
}
export -f analyze_module

analyzer_module() {
	local files=("$out"/kmod/kmod/.*.o.cmd)
	[ -e "${files[0]}" ] || echo "sparse has left no objects"
	printf '%s\n' "${files[@]}" | grep -v '/\.[^/]*\.mod\.o\.cmd$' |
		xargs -P "$(nproc)" -I{} bash -c "analyze_module {} '$headers'"
}

# The programs and the library, but not modules for the tests.
user_files() {
	files "$@" | grep '\.c$' | grep -v /rdmasim/ |
		xargs grep -L '<linux/module.h>' || true
}

# user_check COMMAND FILE
user_check() {
	local command=$1 file=$2 flags=()
	case $file in
	userlib/tests/*) ;;
	userlib/* | examples/*) flags=(-D_GNU_SOURCE) ;;
	# clang looks into the harness's macros, though it is a system's header:
	# they compare what is expected, an int, with what was seen.
	selftests/*) flags=(-Wno-unused-parameter -Wno-sign-compare) ;;
	esac
	# shellcheck disable=SC2086
	$command -std=gnu11 -O2 "${flags[@]}" -Iuapi -Iuserlib/include -Iselftests/lib \
		-isystem "$kselftest" -o /dev/null "$file" 2>&1
}
export -f user_check
export kselftest=$cache_dir/kselftest

# user_checks COMMAND DIRECTORY...
user_checks() {
	user_files "${@:2}" |
		xargs -P "$(nproc)" -I{} bash -c "user_check '$1' {}"
}

# symbols.rst is made from symbols.txt, and who changes that makes it anew.
symbols() {
	awk -v to=rst -f userlib/symbols.awk userlib/symbols.txt |
		diff -u Documentation/symbols.rst - ||
		echo "make -C Documentation symbols"
}

shell_all() {
	local file found=()
	while read -r file; do
		case $file:$(head -n 1 "$file" | tr -d '\0') in
		*.sh:* | *:'#!/bin/sh' | *:'#!'*bash) found+=("$file") ;;
		esac
	done < <(files)
	[ ${#found[@]} = 0 ] || shellcheck -x -P SCRIPTDIR "${found[@]}"
}

warn='-Wall -Wextra -Werror'
echo "TAP version 13"
echo "1..$((changed ? 8 : 11))"
check checkpatch checkpatch_all
check versions versions
check sparse sparse_all
check kernel-doc perl "$scripts/kernel-doc" -none -Werror kmod/*.[ch] \
	uapi/rdma/*.h userlib/*.c selftests/rdmasim/*.[ch]
check gcc user_checks "gcc -fsyntax-only $warn" userlib examples selftests
check clang user_checks "clang -fsyntax-only $warn" userlib examples selftests
check symbols symbols
check shellcheck shell_all
if [ -z "$changed" ]; then
	check coccinelle coccinelle
	check analyzer-module analyzer_module
	check analyzer user_checks 'clang --analyze -Xclang -analyzer-output=text' \
		userlib examples ':!userlib/tests'
fi
exit "$failed"
