#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/symbols.sh
#
# Tests the symbols that librdma_post.so.1 exports, and prints TAP. It must have
# all symbols of the installed libibverbs and librdmacm and of Debian's newer
# ones, and all that Debian's programs and libraries import. The headers must
# compile in C and C++, and the library and the API tests with newer headers.
# Needs no device: programs are only started.

# check() calls the functions below by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir" || exit 1

lib=$build_dir/lib
out=$build_dir/symbols
table=userlib/symbols.txt
suites=(trixie sid)
# The suites' versions that the table covers; a later one may export more.
declare -A known=([trixie]=56 [sid]=65)
rm -rf "$out"
mkdir -p "$out"
subject=symbols
# shellcheck source=../lib/tap.sh
. selftests/lib/tap.sh
evidence() { head -n 40 "$log"; }

# check NAME COMMAND...: a test that passes if the command succeeds; status 4 is
# a skip, with the reason in the last line of the output
check() {
	local name=$1 log=$out/$1.log status=0
	shift
	"$@" >"$log" 2>&1 || status=$?
	if [ "$status" = 4 ]; then
		skip "$name" "$(tail -n 1 "$log")"
	else
		result "$name" "$status"
	fi
}

# exports FILE: print SYMBOL@@NODE for a default version, SYMBOL@NODE for
# another
exports() {
	nm -D --with-symbol-versions --defined-only "$1" |
		awk '$2 != "A" { print $3 }' | sort
}

# imports: read names of files, each before a null, and print FILE SYMBOL@NODE for each
# symbol of both libraries that a file needs; one that is no program needs none
imports() {
	{ xargs -0 nm -AD --with-symbol-versions --undefined-only 2>/dev/null || :; } |
		awk '$NF ~ /@(IBVERBS|RDMACM)_/ { sub(/:.*/, "", $1); print $1, $NF }'
}

# No program links with private versions, so librdma_post has no default of
# them.
without_private_defaults() { sed 's/@@\(IBVERBS_PRIVATE_\)/@\1/' | sort; }

# missing FILE: print the lines of standard input that are not in FILE; fail if
# there are any
missing() { ! comm -23 - "$1" | grep .; }

table_agrees() {
	awk -v to=list -f userlib/symbols.awk "$table" | sort | diff - "$out/ours"
}

# stubs: print the functions by hand whose body only returns an error
stubs() {
	cat userlib/{core,verbs,compat}/*.c | tr '\n\t' '  ' | grep -oE \
		'RPOST_API [^;{}]*\) *\{ *(\(void\)[a-z_]+; *)*return (rpost_(fail|null)\(E[A-Z]+\)|E[A-Z]+); *\}' |
		sed 's/(.*/(/' | sed -E 's/,? *\($//; s/.*[ (*]//' | sort -u
}

# The table says "no" for exactly the functions by hand that always fail.
states_agree() {
	grep -E '^\w+@@(IBVERBS|RDMACM)_' "$table" |
		awk '$3 == "no" { sub(/@@.*/, "", $1); print $1 }' | sort |
		diff - <(stubs)
}

# The inline functions that call through struct verbs_context must work exactly
# if the library sets the entry. ibv_create_srq_ex() works without one, by
# ibv_create_srq().
inlines_agree() {
	local entries
	entries=$(awk '/^struct verbs_context \{/, /^};/' \
		/usr/include/infiniband/verbs.h |
		grep -oE '\(\*[a-z_]+\)' | tr -d '(*)')
	awk '$1 ~ /@inline$/ && $3 != "no" { sub(/^ibv_/, ""); sub(/@.*/, ""); print }' \
		"$table" | grep -Fx "$entries" | grep -vx create_srq_ex |
		sort | diff - <(grep -ohE 'verbs->[a-z_]+ =' userlib/{core,verbs,compat}/*.c |
			sed 's/.*>//; s/ =//' | grep -vxE 'sz|query_port' |
			sort -u)
}

# Each function that works in both libraries is either called in outputs.c, or
# listed as one without outputs.
outputs_agree() {
	local without=selftests/api/no_outputs.txt
	awk '$1 ~ /@@(IBVERBS|RDMACM)_|@inline/ && $2 == 12 && $3 ~ /^(works|partly)$/ {
		sub(/^_/, ""); sub(/@.*/, ""); print $1
	}' "$table" | grep -vxEf <(grep -vE '^(#|$)' "$without") | sort -u |
		missing <(grep -oE '\b(ibv|rdma)_\w+\(' selftests/api/outputs.c |
			tr -d '(' | sort -u)
}

installed_library() {
	local file
	file=$(gcc -print-file-name="$1")
	[ -e "$file" ] || { echo "no $1" && return 1; }
	exports "$file" | without_private_defaults | missing "$out/ours"
}

# suite_root SUITE: print the path of its packages, or why there are none
suite_root() {
	"$vm_dir/fetch.sh" "rdma-$1" >"$out/fetch-$1.log" 2>&1 || {
		echo "cannot fetch $1's packages: $(tail -n 1 "$out/fetch-$1.log")"
		return 4
	}
	echo "$cache_dir/rdma/$1"
}

suite_library() {
	local suite=$1 name=$2 root version
	root=$(suite_root "$suite") || { echo "$root" && return 4; }
	exports "$root"/usr/lib/*/"$name" | without_private_defaults |
		missing "$out/ours" && return
	version=$(awk '$1 == "libibverbs1" { print $2 }' "$root/packages")
	[ "${version%%.*}" = "${known[$suite]}" ] && return 1
	echo "$suite has moved on to $version, the table is of ${known[$suite]}"
	return 4
}

# The library must export all that a suite's programs and providers import; they
# are not started, so their C library does not matter.
suite_imports() {
	local root
	root=$(suite_root "$1") || { echo "$root" && return 4; }
	sed 's/@@/@/' "$out/ours" | sort -u >"$out/ours.any"
	find "$root" -type f \( -path '*bin/*' -o -name '*.so*' \) -print0 | imports |
		awk 'NR == FNR { ours[$1]; next }
			{ files[$1] }
			!($2 in ours) { print $2, "for", $1; bad = 1 }
			END {
				for (file in files)
					n++
				print n + 0, "files"
				exit bad || !n
			}' "$out/ours.any" -
}

# The dynamic linker must find all symbols of the programs and libraries of an
# installed package.
package_links() {
	local file files=0 bad=0
	dpkg -s "$1" 2>/dev/null | grep -q '^Status: .* installed$' ||
		{ echo "$1 is not installed" && return 4; }
	while read -r file; do
		files=$((files + 1))
		LD_LIBRARY_PATH=$lib/rdma_post ldd -r "$file" >"$out/ldd" 2>&1
		grep -E "undefined|not found|lib(ibverbs|rdmacm)\.so\.1 => /(usr|lib)" \
			"$out/ldd" && bad=1
	done < <(dpkg -L "$1" | while read -r file; do
		[ ! -f "$file" ] || [ -L "$file" ] || printf '%s\0' "$file"
	done | imports | cut -d ' ' -f 1 | uniq)
	echo "$files files"
	[ "$bad" = 0 ] && [ "$files" -gt 0 ]
}

# A program that is linked with Debian's libraries and needs all of their public
# symbols at its start must run.
bind_now() {
	local names
	mapfile -t names < <(grep -hoE '^\w+@@(IBVERBS|RDMACM)_[0-9.]+ +12 ' \
		"$table" | sed 's/@.*//')
	{
		printf 'void %s(void);\n' "${names[@]}"
		echo 'void (*volatile all[])(void) = {'
		printf '%s,\n' "${names[@]}"
		echo '}; int main(void) { return !all[0]; }'
	} >"$out/all.c"
	gcc -w -Wl,-z,now -Wl,--no-as-needed -o "$out/all" "$out/all.c" \
		-lrdmacm -libverbs &&
		LD_LIBRARY_PATH=$lib/rdma_post "$out/all" &&
		LD_LIBRARY_PATH=$lib/rdma_post ldd "$out/all" |
		grep -c "=> $lib/rdma_post/" | grep -qx '[12]' &&
		echo "${#names[@]} symbols"
}

# private_names: print the names that any release has in its private node
private_names() {
	local root suite
	for suite in "${suites[@]}"; do
		root=$(suite_root "$suite") || return
		exports "$root"/usr/lib/*/libibverbs.so.1
	done | cat - <(exports "$(gcc -print-file-name=libibverbs.so.1)") |
		sed -nE 's/@+IBVERBS_PRIVATE_[0-9]+$//p' |
		grep -v '^verbs_register_driver_' | sort -u
}

# A provider that needs all names in its release's private node must load. Debian
# has no release with 57, 59 or 64: a stand-in for libibverbs has their nodes.
provider_loads() {
	local node=IBVERBS_PRIVATE_$1 names
	mapfile -t names < <(private_names)
	[ ${#names[@]} -gt 80 ] || { echo "no packages to take names from" && return 4; }
	names+=("verbs_register_driver_$1")
	mkdir -p "$out/$node"
	printf 'int %s;\n' "${names[@]}" >"$out/$node/lib.c"
	echo "$node { *; };" >"$out/$node/map"
	{
		printf 'extern int %s;\n' "${names[@]}"
		echo 'void *all[] = {'
		printf '&%s,\n' "${names[@]}"
		echo '};'
	} >"$out/$node/provider.c"
	gcc -w -shared -fPIC -Wl,-soname,libibverbs.so.1 \
		-Wl,--version-script="$out/$node/map" \
		-o "$out/$node/libibverbs.so" "$out/$node/lib.c" &&
		gcc -w -shared -fPIC -o "$out/$node/provider.so" "$out/$node/provider.c" \
			-L"$out/$node" -libverbs &&
		[ "$(printf '%s\0' "$out/$node/provider.so" | imports |
			grep -c "@$node\$")" = ${#names[@]} ] &&
		LD_LIBRARY_PATH=$lib/rdma_post ldd -r "$out/$node/provider.so" >"$out/ldd" &&
		! grep -E 'undefined|not (found|defined)' "$out/ldd"
}

headers=(rdma/rdma_post_abi.h rdma/rdma_cma.h rdma/rdma_verbs.h
	rdma/rsocket.h infiniband/verbs.h)
[ ! -e userlib/include/rdma/rdma_post.h ] || headers+=(rdma/rdma_post.h)

# include_flags SUITE: print the compiler options for its headers
include_flags() {
	local root
	echo "-Iuapi -Iuserlib/include"
	[ "$1" != installed ] || return 0
	root=$(suite_root "$1") || { echo "$root" && return 4; }
	echo "-isystem $root/usr/include"
}

each_header() {
	local flags header
	flags=$(include_flags "$1") || { echo "$flags" && return 4; }
	for header in "${headers[@]}"; do
		echo "#include <$header>" >"$out/header.c"
		# shellcheck disable=SC2086
		gcc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only $flags \
			"$out/header.c" &&
			g++ -std=c++17 -x c++ -Wall -Wextra -Wpedantic -Werror \
				-fsyntax-only $flags "$out/header.c" || return 1
	done
}

# Print a program that must run on any host, also without a device.
program() {
	local header
	for header in "${headers[@]}"; do
		echo "#include <$header>"
	done
	cat <<-'EOF'
	int main(void)
	{
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_wc wc = {};

		if (list)
			ibv_free_device_list(list);
		if (channel)
			rdma_destroy_event_channel(channel);
		return rsocket(0, 0, 0) != -1 || wc.status != IBV_WC_SUCCESS;
	}
	EOF
}

cplusplus() {
	local flags
	flags=$(include_flags "$1") || { echo "$flags" && return 4; }
	program >"$out/program.cc"
	# shellcheck disable=SC2086
	g++ -Wall -Wextra -Werror -Wno-missing-field-initializers $flags \
		-o "$out/program" "$out/program.cc" -L"$lib" -lrdma_post &&
		LD_BIND_NOW=1 LD_LIBRARY_PATH=$lib "$out/program"
}

static_library() {
	program >"$out/program.c"
	gcc -Wall -Wextra -Werror -Iuapi -Iuserlib/include -static \
		-o "$out/program-static" "$out/program.c" \
		"$lib/librdma_post.a" &&
		"$out/program-static"
}

# The library must export the same symbols if built with a suite's headers.
library_with() {
	local root
	root=$(suite_root "$1") || { echo "$root" && return 4; }
	make -s -C userlib BUILD="$out/$1" CFLAGS='-O2 -Werror' \
		CPPFLAGS="-isystem $root/usr/include" &&
		exports "$out/$1/lib/librdma_post.so.1" | diff "$out/ours" -
}

# The API tests must compile with a suite's headers and link with the library.
api_tests_with() {
	local root
	root=$(suite_root "$1") || { echo "$root" && return 4; }
	make -s -C selftests/api OUT="$build_dir/selftests/api-$1" \
		LIBDIR="$lib" CFLAGS="-O1 -Werror -isystem $root/usr/include"
}

exports "$lib/librdma_post.so.1" >"$out/ours" || exit 1

echo "TAP version 13"
check table table_agrees
check states states_agree
check inlines inlines_agree
check outputs outputs_agree
check installed.libibverbs installed_library libibverbs.so.1
check installed.librdmacm installed_library librdmacm.so.1
check bookworm.imports suite_imports bookworm
for suite in "${suites[@]}"; do
	check "$suite.libibverbs" suite_library "$suite" libibverbs.so.1
	check "$suite.librdmacm" suite_library "$suite" librdmacm.so.1
	check "$suite.imports" suite_imports "$suite"
done
check bind_now bind_now
for version in 34 57 59 64 65; do
	check "provider_loads.$version" provider_loads "$version"
done
for package in rdmacm-utils ibverbs-utils ibverbs-providers perftest; do
	check "links.$package" package_links "$package"
done
for suite in installed "${suites[@]}"; do
	check "headers.$suite" each_header "$suite"
	check "cplusplus.$suite" cplusplus "$suite"
done
check static_library static_library
for suite in "${suites[@]}"; do
	check "library_with.$suite" library_with "$suite"
	check "api_tests_with.$suite" api_tests_with "$suite"
done
end_tap
