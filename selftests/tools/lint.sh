#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/lint.sh [-c]
#
# Runs static checks, and prints TAP: checkpatch --strict, sparse, coccinelle with the
# kernel's scripts, clang's analyzer, kernel-doc, gcc and clang warnings, shellcheck.
# Also checks that no call of kmod/ goes up, that no file is empty, that the tests and
# functions which documents name exist, that the tables of programs.rst and of figures are
# up to date, that the documents have the module's parameters, that make help has all
# targets, that no test is flaky for long, that each function of our own has a manual page,
# that mandoc likes them, that make docs has no warnings, that lintian finds nothing in
# Debian's packages, and that reuse knows the licence of each file. A check fails if it
# prints anything. (kmod.sh builds the module with W=1.)
#
#   -c   only files that have changed since the branch's upstream, or else in the
#        last commit, and not the checks that take long: coccinelle, the analyzer,
#        make docs, lintian, reuse

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
if [ -z "$changed" ]; then
	"$vm_dir/deps.sh" deb lint && "$vm_dir/fetch.sh" source-7.2 || exit 1
fi
scripts=$cache_dir/scripts
headers=$(echo "$cache_dir"/kernels/6.1/root/usr/src/linux-headers-*-amd64)
out=$build_dir/lint
mkdir -p "$out"
subject=lint
# shellcheck source=../lib/tap.sh
. selftests/lib/tap.sh
evidence() { head -n 40 "$out/$name.log"; }

# check NAME COMMAND...: a test that passes if the command succeeds in silence
check() {
	local name=$1
	shift
	"$@" >"$out/$name.log" 2>&1 && [ ! -s "$out/$name.log" ]
	result "$name" $?
}

# files PATHSPEC...: print the files to check
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

# The modules for tests.
modules=(selftests/{rdmasim,bench/floor,qp_error,slow_routes,target}/*.[ch])

mapfile -t kmod_files < <(git ls-files 'kmod/*.[ch]')

# Locks are described in the kernel-doc above their struct, which checkpatch does
# not see. Tracepoints have a layout of their own. Programs include the interface's
# header, too, and have no BIT().
checkpatch() {
	local ignore=UNCOMMENTED_DEFINITION
	case $1 in
	*/trace.h) ignore+=,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,COMPLEX_MACRO,TRAILING_SEMICOLON ;;
	# Both make declarations of the rows of commands.h.
	kmod/core/core.h | kmod/face/main.c) ignore+=,TRAILING_SEMICOLON ;;
	kmod/compat/* | */rdmasim/compat.h) ignore+=,LINUX_VERSION_CODE,CONSTANT_COMPARISON ;;
	esac
	perl "$scripts/checkpatch.pl" --strict --no-tree --terse --no-summary \
		--no-signoff --max-line-length=100 --ignore "$ignore" -f "$1"
}

checkpatch_all() {
	local file
	for file in $(files 'kmod/*.[ch]' 'uapi/*.h' "${modules[@]}"); do
		checkpatch "$file"
	done
}

# Only compat/ may depend on the kernel's version.
versions() {
	! grep -rn LINUX_VERSION_CODE kmod --include='*.[ch]' --exclude-dir=compat
}

sparse_all() {
	[ -n "$(files kmod uapi Kbuild)" ] || return 0
	rm -rf "$out/kmod" && mkdir -p "$out/kmod" &&
		cp -r Kbuild kmod uapi "$out/kmod" || return 1
	find "$out/kmod" -name '*.o' -delete
	make -s -C "$headers" M="$out/kmod" C=2 W=1 modules >"$out/make.log" 2>&1 ||
		tail -n 20 "$out/make.log"
	grep -E ': (warning|error):' "$out/make.log" | grep -v "$headers/"
	true
}

# A file of kmod/ calls its own floor and those below, and includes their headers. Only
# object.c looks up, at the tables of types. (Of code under #ifdef this sees what the
# kernel of sparse_all has.)
floors() {
	[ -n "$(files kmod uapi Kbuild)" ] || return 0
	{
		find "$out/kmod/kmod" -name '*.o' -exec nm -A {} +
		git grep -oE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]*/' -- kmod
	} | awk '
		BEGIN {
			num = split("compat base core memory id queue post face", names)
			for (i = 1; i <= num; i++)
				floor[names[i]] = i
		}
		{
			sub(/.*kmod\//, "")
			file = $0
			sub(/:.*/, "", file)
			split(file, path, "/")
			if (!(path[1] in floor))
				print file ": no floor"
		}
		/include[ \t]*["<]/ {
			sub(/.*["<]/, "")
			if ($0 ~ /^\./)
				print file ": " $0 " is no floor"
			needs[file, $0] = $0
			next
		}
		file == "core/object.o" && $3 ~ /^rpost_(types|teardown_order)$/ { next }
		$2 ~ /^[Uvw]$/ { needs[file, $3] = "" }
		$2 ~ /^[A-TV-Z]$/ { defined[$3] = any = file }
		END {
			if (!any)
				print "sparse has left no objects"
			for (need in needs) {
				split(need, pair, SUBSEP)
				to = needs[need] ? needs[need] : defined[pair[2]]
				split(pair[1], from, "/")
				split(to, up, "/")
				if (floor[up[1]] > floor[from[1]])
					print pair[1] " needs " pair[2] " of " to
			}
		}'
}

# cocci_script FILE: run a script of coccinelle with the options that it names
cocci_script() {
	local options
	read -ra options < <(sed -n 's|^// Options: *||p' "$1")
	spatch --very-quiet -D report --no-show-diff "${options[@]}" \
		--cocci-file "$1" --dir kmod 2>&1 || echo "$1: spatch failed"
}
export -f cocci_script

# Leave three scripts out: badzero and check_bq27xxx_data need an OCaml compiler, and
# kmalloc_objs only makes patches (to kmalloc_obj(), which 6.1 does not have).
coccinelle() {
	find "$cache_dir/source/7.2/scripts/coccinelle" -name '*.cocci' |
		grep -vE '/(badzero|check_bq27xxx_data|kmalloc_objs)\.cocci$' |
		xargs -P "$(nproc)" -I{} bash -c 'cocci_script {}' |
		# Ignore warnings about the scripts themselves.
		grep -vE '^warning: line [0-9]+: should .* be a metavariable' || true
}

# Run clang's analyzer with the options that it knows of gcc's command for this file,
# which sparse_all has left. Ignore reports about the kernel's headers. Leave out checks
# that fail because the analyzer does not know that copy_from_user() initializes memory,
# where ERR_PTR() is returned, and that a kref_put() need not be the last.
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
	local files
	mapfile -t files < <(find "$out/kmod/kmod" -name '.*.o.cmd' ! -name '.*.mod.o.cmd')
	[ ${#files[@]} != 0 ] || echo "sparse has left no objects"
	printf '%s\n' "${files[@]}" |
		xargs -P "$(nproc)" -I{} bash -c "analyze_module {} '$headers'"
}

# Print the files of the programs and the library, but not of modules for the tests.
user_files() {
	files "$@" | grep '\.c$' | grep -vE '/(rdmasim|floor|qp_error|slow_routes|target)/' || true
}

# user_check COMMAND FILE
user_check() {
	local command=$1 file=$2 flags=()
	case $file in
	userlib/tests/*) ;;
	userlib/* | examples/*) flags=(-D_GNU_SOURCE) ;;
	tools/*)
		flags=(-D_GNU_SOURCE '-DTOOL_VERSION="0"' '-DTOOL_LIBDIR="/usr/lib"')
		;;
	# clang looks into the harness's macros, though it is a system's header:
	# they compare what is expected, an int, with what was seen.
	selftests/*) flags=(-Wno-unused-parameter -Wno-sign-compare) ;;
	esac
	# shellcheck disable=SC2086
	$command -std=gnu11 -O2 "${flags[@]}" -Iuapi -Iuserlib -Iuserlib/include -Iselftests/lib \
		-I"$made" -isystem "$kselftest" -o /dev/null "$file" 2>&1
}
export -f user_check
export kselftest=$cache_dir/kselftest
# Headers that the library's build makes
export made=$out/made
mkdir -p "$made"
for name in stubs symver; do
	awk -v to=$name -f userlib/symbols.awk userlib/symbols.txt >"$made/$name.h"
done

# user_checks COMMAND DIRECTORY...
user_checks() {
	user_files "${@:2}" |
		xargs -P "$(nproc)" -I{} bash -c "user_check '$1' {}"
}

# symbols.rst must be the one that symbols.awk makes from symbols.txt.
symbols() {
	awk -v to=rst -f userlib/symbols.awk userlib/symbols.txt |
		diff -u Documentation/symbols.rst - ||
		echo "make -C Documentation symbols"
}

# The table of programs.rst must be the one that summary.awk makes from program-cases.rst.
programs() {
	awk -f selftests/interop/summary.awk selftests/interop/packages \
		Documentation/program-cases.rst |
		awk -f selftests/tools/replace.awk - Documentation/programs.rst |
		diff -u Documentation/programs.rst - ||
		echo "make -C Documentation programs"
}

# The tables of figures must be those that results.json gives.
figures() {
	selftests/bench/docs.sh -d || echo "make -C Documentation figures"
}

# Tests that documents name, as PROGRAM FIXTURE.TEST (see security.rst), must exist.
named_tests() {
	local program name test where found
	# shellcheck disable=SC2016
	grep -ohE '``[a-z_/]+ [a-z_]+(\.[a-z_0-9*]+)+``' Documentation/*.rst | tr -d '`' |
		grep -v '^struct ' | sort -u | while read -r program name; do
		test=${name##*.} where=(-not -path 'selftests/api/*')
		[[ $program != api/* ]] || where=(-path 'selftests/api/*')
		case $name in
		wire.*) found="^[^#]*\b$test\b" ;;
		global.*) found="^TEST\(${test//\*/.*}\)" ;;
		*) found="^TEST_F(_TIMEOUT)?\(${name%%.*}, ${test//\*/.*}[,)]" ;;
		esac
		find selftests "${where[@]}" \( -name "${program##*/}.c" -o \
			-name "${program##*/}*.h" -o -path selftests/wire/guest.sh \) \
			-exec grep -hE "$found" {} + | grep -q . ||
			echo "$program $name: no such test"
	done
}

# So must those of the tables in manual-pages.rst, as PROGRAM: TEST, TEST; PROGRAM: TEST. In
# the first table the program is manpages.
manual_page_tests() {
	local program name
	awk '
		function row(part, name, i, j, n, m, program) {
			gsub(/\([^)]*\)/, "", text)
			n = split(text, part, ";")
			for (i = 1; i <= n; i++) {
				program = tables == 1 ? "manpages" : "none"
				if (match(part[i], /^ *[a-z_]+: /)) {
					program = substr(part[i], 1, RLENGTH - 2)
					part[i] = substr(part[i], RLENGTH)
				}
				m = split(part[i], name, /[ ,]+/)
				for (j = 1; j <= m; j++)
					if (name[j] ~ /[a-z]/) {
						print program, name[j]
						found = 1
					}
			}
			text = ""
		}
		/^sentence / { tables++; bars = 2; next }
		/^==/ && bars { row(); bars--; next }
		bars { if (/^[^ ]/) row(); text = text " " substr($0, 49) }
		END { if (!found) print "manual-pages.rst names no tests" > "/dev/stderr" }
	' Documentation/manual-pages.rst | while read -r program name; do
		grep -qE "^TEST(_F)?(_TIMEOUT)?\((.*, )?${name##*.}[,)]" "selftests/api/$program.c" ||
			echo "manual-pages.rst: $program: $name: no such test"
	done
}

# So must the functions and structs of module and library. (CONTRIBUTING.md has an example
# of a struct.)
named_functions() {
	local name
	{
		grep -ohE '\brpost_[a-z0-9_]+\(\)' Documentation/*.rst ./*.md | tr -d '()'
		grep -ohE 'struct rpost_[a-z0-9_]+' Documentation/*.rst
	} | sort -u | while read -r name; do
		git grep -qwF "$name" -- kmod userlib uapi || echo "$name: not in the sources"
	done
}

# make help, which prints the Makefile's head, must list every target and no other.
make_help() {
	diff <(sed -n '/^\.PHONY/,$p' Makefile | tr -s '\\ \t' '\n' |
		grep -vxE '\.PHONY:|all|packages|guests|headers|' | sort) \
		<(make -s help | grep -oE 'make [a-z_-]+' | cut -d ' ' -f 2 | sort)
}

# An empty script does nothing, and succeeds.
scripts() {
	local mode file
	git ls-files -s | while read -r mode _ _ file; do
		[ -e "$file" ] || continue
		[ -s "$file" ] || echo "$file is empty"
		[ "$mode" != 100755 ] || [ "$(head -c 2 "$file" | tr -d '\0')" = '#!' ] ||
			echo "$file is executable and does not begin with #!"
	done
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

# Each function of our own has a manual page, which mandoc understands. What the tools print
# names manual pages: who installs packages has no source.
manual_pages() {
	local pages function
	git grep -n '"[^"]*Documentation/' -- 'tools/*.c'
	mapfile -t pages < <(files '*.[1-8]')
	[ ${#pages[@]} = 0 ] || mandoc -T lint -W warning "${pages[@]}"
	sed -n 's/^[a-z].*\b\(rdma_post_[a-z_]*\)(.*/\1/p' \
		userlib/include/rdma/rdma_post.h | while read -r function; do
		[ -e "userlib/man/$function.3" ] ||
			echo "userlib/man/$function.3: no such manual page"
	done
}

# make docs takes a warning of Sphinx for an error.
docs() {
	make -s docs BUILD="$out/docs" >"$out/sphinx.log" 2>&1 || tail -n 20 "$out/sphinx.log"
}

# Print "PARAMETER: DEFAULT" for each parameter that the module declares, describes, or sets
# to a number. A description has the default in parentheses, or before "(default)"; a string
# has none.
code_parameters() {
	perl -0777 -ne '
		my %type = /^module_param(?:_\w+)?\((\w+), (\S+),/mg;
		my %text = /^MODULE_PARM_DESC\((\w+),\s*"(.*)"\);/mg;
		my %number = /^static unsigned int (\w+) = (\d+);/mg;
		for (keys %{{%type, %text}}) {
			my ($type, $text) = ($type{$_} // "undeclared", $text{$_} // "");
			my $default = $type eq "charp" ? "none" :
				$text =~ /(\w+) \(default\)/ || $text =~ /\((.*?)\)/ ? $1 : "";
			print "$_: $default\n";
			print "$_: $number{$_}\n" if exists $number{$_};
			print "$_: $type\n" if $type eq "undeclared";
		}' "${kmod_files[@]}" | sort -u
}

# same_parameters DOCUMENT PATTERN: its parameters and defaults, which the pattern finds,
# must be the code's.
same_parameters() {
	perl -0777 -ne 'BEGIN { $pattern = pop }
		print "$1: ", ($2 // "") =~ tr/,`//dr, "\n" while /$pattern/mg' "$@" |
		sort | diff -u --label kmod --label "$1" <(code_parameters) -
}

parameters() {
	same_parameters userlib/man/rdma_post.4 '^\.It Va (\w+)(?: Pq (.*))?$'
	# shellcheck disable=SC2016
	same_parameters Documentation/limits.rst '^   \* - ``(\w+)``\n     - (.*)$'
}

# The release's version stands in six places.
release() {
	local version
	version=$(release_version)
	grep -qFx "PACKAGE_VERSION=\"$version\"" dkms.conf || echo "dkms.conf: not $version"
	grep -qFx "MODULE_VERSION(\"$version\");" kmod/face/main.c || echo "kmod/face/main.c: not $version"
	head -n 1 packaging/debian/changelog | grep -qF "($version)" ||
		echo "packaging/debian/changelog: not $version"
	grep -qP "^Version:\t\t?$version$" packaging/rpm/rdma-post.spec ||
		echo "packaging/rpm/rdma-post.spec: not $version"
	grep -qF "rdma_post_version $version}" packaging/rpm/rdma-post-kmod.spec ||
		echo "packaging/rpm/rdma-post-kmod.spec: not $version"
}

# selftests/flaky has at most five names, and none for more than 14 days.
flaky() {
	local name since reason now
	now=$(git log -1 --format=%ct)
	while IFS=$'\t' read -r name since reason; do
		since=$(date -d "$since" +%s) && [ -n "$reason" ] ||
			echo "$name: no date, or no reason"
		[ $(((now - since) / 86400)) -le 14 ] && [ "$since" -le "$now" ] ||
			echo "$name is flaky for more than 14 days, or not yet"
	done < <(grep -vE '^(#|$)' "${1:-selftests/flaky}")
	[ "$(grep -cvE '^(#|$)' "${1:-selftests/flaky}")" -le 5 ] ||
		echo "more than five names are flaky"
}

# Debian's packages, binary and source
lintian_packages() {
	RDMA_POST_BUILD=$out packaging/deb.sh >"$out/deb.log" 2>&1 || {
		tail -n 20 "$out/deb.log"
		return 1
	}
	# It does not like to be root.
	lintian --fail-on none --profile debian "$out"/deb/*.changes 2>&1 |
		grep -v '^running with root privileges' || true
}

# Each file has a licence and a copyright, its own or that of .reuse/dep5. The headers have the
# kernel's name GPL-2.0, which SPDX calls deprecated.
licences() {
	{ reuse lint 2>&1 || true; } | awk '
		/^# SUMMARY$/ { summary = 1 }
		summary || /^$/ || /^# DEPRECATED LICENSES$/ || /are deprecated by SPDX:$/ ||
			/^\* GPL-2\.0$/ { next }
		{ print }
		END { if (!summary) print "reuse lint has come to no end" }'
}

warn='-Wall -Wextra -Werror'
echo "TAP version 13"
check checkpatch checkpatch_all
check versions versions
check sparse sparse_all
check floors floors
check kernel-doc perl "$scripts/kernel-doc" -none -Werror "${kmod_files[@]}" \
	uapi/rdma/*.h userlib/{core,verbs,compat}/*.c "${modules[@]}"
check gcc user_checks "gcc -fsyntax-only $warn" userlib tools examples selftests
check clang user_checks "clang -fsyntax-only $warn" userlib tools examples selftests
check symbols symbols
check programs programs
check figures figures
check parameters parameters
check make-help make_help
check scripts scripts
check named-tests named_tests
check manual-page-tests manual_page_tests
check named-functions named_functions
check shellcheck shell_all
check manual-pages manual_pages
check release release
check flaky flaky
if [ -z "$changed" ]; then
	check coccinelle coccinelle
	check analyzer-module analyzer_module
	check analyzer user_checks 'clang --analyze -Xclang -analyzer-output=text' \
		userlib tools examples ':!userlib/tests'
	check docs docs
	check lintian lintian_packages
	check licences licences
fi
end_tap
