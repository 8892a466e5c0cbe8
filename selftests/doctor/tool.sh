#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: tool.sh [RDMA-POST]
#
# Tests on this host what of rdma-post needs no module: options, JSON, and doctor
# --program, for which it builds programs that the loader treats differently. Prints TAP.
# The argument is by default build/bin/rdma-post, beside build/lib.

# Functions are called by name.
# shellcheck disable=SC2317

set -u
. "$(dirname "$0")/../vm/lib.sh"
tool=$(readlink -f "${1:-$build_dir/bin/rdma-post}")
[ -x "$tool" ] || die "no ${1:-$build_dir/bin/rdma-post}: make tools"
lib=$(readlink -f "$(dirname "$tool")/../lib")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset LD_LIBRARY_PATH
subject=tool
# shellcheck source=../lib/tap.sh
. "$top_dir/selftests/lib/tap.sh"

# status NAME STATUS STDOUT STDERR ARGUMENT...: test the exit status and a pattern that
# each output has; an empty pattern wants no output
status() {
	local name=$1 want=$2 out=$3 err=$4 got
	shift 4
	"$tool" "$@" >out 2>err
	got=$?
	[ "$got" = "$want" ] && matches out "$out" && matches err "$err"
	result "$name" $?
}

matches() {
	if [ -n "$2" ]; then grep -q -e "$2" "$1"; else [ ! -s "$1" ]; fi
}

options() {
	status help 0 '^  doctor ' '' --help
	status version 0 '^rdma-post [0-9.]*$' '' --version
	status help_command 0 '^  doctor ' '' help
	status help_of_a_command 0 '^Usage: rdma-post doctor' '' help doctor
	status help_unknown_command 2 '' 'help: frobnicate: unknown command' help frobnicate
	status help_argument 2 '' 'help: spare: unexpected argument' help list spare
	status version_command 0 '^rdma-post [0-9.]*$' '' version
	status version_argument 2 '' 'version: spare: unexpected argument' version spare
	status no_command 2 '' 'no command'
	status no_command_but_an_option 2 '' 'no command' -j
	status help_behind_an_option 0 '^Usage: rdma-post ' '' -j --help
	status help_of_a_command_behind_an_option 0 '^Usage: rdma-post list' '' -j help list
	status option_before_unknown 2 '' 'frobnicate: unknown command' -j frobnicate
	# What is said of an option is the same on either side of the command.
	status unknown_option_before 2 '' 'rdma-post list --help' --frobnicate list
	status help_before 0 '^Usage: rdma-post list' '' -j --help list
	status unknown_command 2 '' 'frobnicate: unknown command' frobnicate
	local command
	for command in cdi devices doctor limit list show stat top trace; do
		status "${command}_help" 0 "^Usage: rdma-post $command" '' $command --help
		status "${command}_unknown_option" 2 '' "rdma-post $command --help" \
			$command --frobnicate
	done
	for command in devices doctor list stat top trace; do
		status "${command}_argument" 2 '' 'unexpected argument' $command spare
	done
	for command in stat top trace; do
		status "${command}_count" 2 '' 'not a number of 1 or more' $command -n -1
	done
	for command in stat top; do
		status "${command}_interval" 2 '' 'not a number of seconds' $command -i 0
	done
	status trace_seconds 2 '' 'not a number of seconds' trace -s 0
	status trace_event 2 '' 'post completions: no such event; there are state,' \
		trace -e 'state,post completions'
	status trace_no_event 2 '' ': no such event' trace -e ''
	status trace_pid 2 '' '0: not a PID' trace --pid 0
	status stat_prometheus 2 '' 'goes with no other option' stat --prometheus -j
	status show_no_pid 2 '' 'show: no PID' show
	status show_bad_pid 2 '' 'not a PID' show 1x
	status show_two_pids 2 '' 'unexpected argument' show 1 2
	status limit_two_cgroups 2 '' 'more than one cgroup' limit a b --rate 1
	status limit_no_cgroup 2 '' 'no cgroup' limit --rate 1
	status limit_no_policy 2 '' 'give options of a policy' limit a
	status limit_both 2 '' 'give options of a policy' limit a --rate 1 --remove
	status limit_json 2 '' '--json is for the list' limit -j a --rate 1
	status limit_from 2 '' '--from stands alone' limit --from x a
	status limit_burst 2 '' '--burst is for' limit a --burst 1
	status limit_long_burst 2 '' 'from 0 to 10' limit a --rate 1 --burst 11
	local peer
	for peer in '' 10.0.0 10.0.0.1/33 10.0.0.1/8 10.0.0.1: 10.0.0.1:65536 10.0.0.1:2-1 \
		'[fd00::1' '[fd00::1]7' 'fd00::1/129' :x; do
		status "limit_peer_$peer" 2 '' 'not an address' limit a --connect "$peer"
	done
	local number
	for number in '' 0 -1 1e19 1X 1KB nan; do
		status "limit_rate_$number" 2 '' 'not a number' limit a --rate "$number"
	done
	# shellcheck disable=SC2046
	status limit_many_peers 2 '' 'more than 64' limit a $(yes -- '--connect 10.0.0.1' | head -65)
	status run_unknown_option 125 '' 'rdma-post run --help' run --frobnicate
	status doctor_missing_argument 2 '' 'requires an argument' doctor --program
	# Even what getopt() says begins with the program's name.
	status prefix 2 '' "^rdma-post: stat: unrecognized option '--frobnicate'" stat --frobnicate
	: >out
	"$tool" --help >/dev/full 2>err
	[ $? = 2 ] && grep -q 'cannot write' err
	result full_disk $?
}

# complete_SHELL WORD...: print what the shell completes the last word with
complete_bash() {
	local COMP_WORDS COMP_CWORD COMPREPLY
	COMP_WORDS=("$tool" "$@") COMP_CWORD=$#
	_rdma_post "$tool" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}"
}

# zsh completes at a terminal only, so that its functions are played here.
# shellcheck disable=SC2016
complete_zsh() {
	zsh -fc '
		compadd() { shift; print -l -- ${(M)@:#${words[CURRENT]}*} }
		_call_program() { shift; "$@" }
		_command_names() { }
		_files() { print -l -- ${words[CURRENT]}*(N) }
		completion=$1
		shift
		words=("$@") CURRENT=$#
		complete_words() { . $completion }
		complete_words | sed "/^$/d"
	' zsh "$top_dir/tools/rdma-post.zsh" "$tool" "$@"
}

# fish also offers words that have the last one inside.
# shellcheck disable=SC2016
complete_fish() {
	HOME=$dir fish --no-config -c 'source $argv[1]; complete -C "$argv[2..-1]"' \
		"$top_dir/tools/rdma-post.fish" "$tool" "$@" |
		awk -F '\t' -v word="${!#}" 'index($1, word) == 1 { print $1 }'
}

# completes NAME WANT WORD...: test what shells complete the last word with
completes() {
	local name=$1 want=$2 shell
	shift 2
	for shell in bash zsh fish; do
		"complete_$shell" "$@" >out 2>err
		[ "$(paste -sd ' ' out)" = "$want" ] && [ ! -s err ]
		result "completes_${name}_in_$shell" $?
	done
}

completion() {
	: >err
	# shellcheck source=../../tools/rdma-post.bash
	. "$top_dir/tools/rdma-post.bash"
	completes command doctor 'do'
	completes command_after_options doctor -j --quiet 'do'
	completes option_after_options --program -j doctor --pr
	completes help help he
	completes command_for_help 'devices doctor' help d
	completes json --json --j
	completes commands 'devices doctor' d
	completes prometheus --prometheus stat --pro
	completes subcommand generate cdi g
	completes option_of_cdi --output cdi generate --o
	completes version --version --v
	completes event 'completion' trace --event c
	completes option_of_trace '--seconds' trace --s
	completes option '--program' doctor --pr
	completes option_of_devices '--json' devices --j
	touch some_program
	completes program some_program doctor --program some_prog
	completes output_file some_program cdi generate -o some_prog
	touch 'odd program'
	[ "$(complete_bash doctor --program odd)" = 'odd program' ]
	result completes_program_with_a_space $?
	# Without this bash does not quote the name.
	complete -p rdma-post >out
	test_ completes_with_quotes grep -q -e '-o filenames' out
}

# Colours are for terminals; script(1) makes one.
colours() {
	: >err
	script -qec "TERM=xterm '$tool' doctor" /dev/null </dev/null >out
	test_ colours_on_a_terminal grep -q $'\033\\[' out
	NO_COLOR=1 script -qec "TERM=xterm '$tool' doctor" /dev/null </dev/null >out
	[ -s out ] && ! grep -q $'\033' out
	result no_colours_if_unwanted $?
	"$tool" doctor >out
	[ -s out ] && ! grep -q $'\033' out
	result no_colours_in_a_pipe $?
}

# has NAME FILTER ARGUMENT...: test what jq finds in the output as JSON
has() {
	local name=$1 filter=$2
	shift 2
	"$tool" "$@" >out 2>err
	jq -e "$filter" out >jq.log
	result "$name" $?
}

json() {
	has doctor_json '(keys == ["findings", "problems", "version"]) and
		(.problems == ([.findings[] | select(.status == "problem")] | length)) and
		(.findings | length > 3) and all(.findings[];
			keys_unsorted == ["check", "status", "object", "what", "why", "try"] and
			(.status | IN("ok", "note", "problem", "unknown", "skipped")))' doctor -j
	has json_before '.findings | length > 3' -j doctor
	"$tool" doctor >all 2>err
	"$tool" -q doctor >out 2>err
	grep -q '^ok ' all && ! grep -q '^ok ' out
	result quiet_before $?
	has devices_json 'keys_unsorted == ["node", "node_error", "netns_mode", "devices"]' devices -j
	# Bytes that are no UTF-8, control characters, quotes.
	has odd_names_in_json '.findings[] | select(.check == "program.file") |
		.object | startswith("a\"\\\n\ufffd") and endswith("z")' \
		doctor -j -p $'a"\\\n\377\355\240\200z'
	"$tool" doctor -j -p $'a\177\302\233\302\240z' >out 2>err
	test_ control_characters_in_json grep -qF $'"a\\u007f\\u009b\302\240z"' out
	"$tool" doctor -p $'a\033[31m\302\233\377\303\244b' >out 2>err
	grep -qF $'a?[31m??\303\244b: there is no such program' out &&
		! LC_ALL=C grep -q $'\033\|\233\|\377' out
	result odd_names_in_text $?
}

# examine FILE: let doctor look at a program, and fail if it does not end soon by itself.
# jq says nothing of empty files.
examine() {
	timeout 60 "$tool" doctor -j --program "$1" >out 2>err
	(($? <= 1)) && [ -s out ]
}

# program NAME CHECK STATUS TEXT FILE: test what doctor says of a program
program() {
	examine "$5" && jq -e --arg check "$2" --arg status "$3" --arg text "$4" '
		[.findings[] | select(.check | startswith("program."))] as $found |
		($found | map(.check + " " + .status) | unique) == [$check + " " + $status] and
		any($found[]; [.what, .why, .try] | map(. // "") | any(contains($text)))' \
		out >/dev/null
	result "program_$1" $?
}

# stub DIRECTORY NODE [CC ARGUMENT]: make a librdmacm.so.1 with this version node
stub() {
	mkdir -p "$1"
	echo 'int rdma_bind_addr(void) { return 0; }' >stub.c
	echo "$2 { global: rdma_bind_addr; };" >stub.map
	# shellcheck disable=SC2086
	cc ${3-} -shared -fPIC -Wl,-soname,librdmacm.so.1 -Wl,--version-script=stub.map \
		-o "$1/librdmacm.so.1" stub.c && ln -sf librdmacm.so.1 "$1/librdmacm.so"
}

build() {
	echo 'int rdma_bind_addr(void); int main(void) { return rdma_bind_addr(); }' >main.c
	echo 'int nothing(void) { return 0; }' >nothing.c
	echo 'int nothing(void); int main(void) { return nothing(); }' >needs_nothing.c
	cat >strings.c <<-'END'
		#include <stdio.h>
		int main(void) { puts(NAME); return 0; }
	END
	mkdir named
	# shellcheck disable=SC2016
	{
		stub plain RDMACM_1.0 && stub later RDMACM_9.9 && stub small RDMACM_1.0 -m32 &&
			cc -o dynamic main.c -Lplain -lrdmacm &&
			cc -o runpath main.c -Lplain -lrdmacm \
				-Wl,--enable-new-dtags,-rpath,'$ORIGIN/plain' &&
			cc -o rpath main.c -Lplain -lrdmacm \
				-Wl,--disable-new-dtags,-rpath,'${ORIGIN}/plain' &&
			cc -o rpath_to_nothing main.c -Lplain -lrdmacm \
				-Wl,--disable-new-dtags,-rpath,/nowhere &&
			cc -shared -fPIC -o named/librdmacm.so.1 stub.c &&
			cc -o by_path main.c named/librdmacm.so.1 &&
			cc -o later_version main.c -Llater -lrdmacm &&
			cc -m32 -o small_program main.c -Lsmall -lrdmacm &&
			cc -shared -fPIC -o libnothere.so nothing.c &&
			cc -o missing needs_nothing.c -L. -lnothere &&
			cc -shared -fPIC -o libindirect.so nothing.c -Wl,--no-as-needed \
				-Lplain -lrdmacm &&
			cc -o indirect needs_nothing.c -L. -lindirect -Wl,-rpath,"$dir" \
				-Wl,-rpath-link,plain -Wl,--disable-new-dtags &&
			cc -static -o static strings.c -DNAME='"/dev/infiniband"' &&
			cc -static -o static_post strings.c -DNAME='"/dev/rdma_post"' &&
			cc -o dlopen strings.c -DNAME='"libibverbs.so.1"' &&
			cc -o dlopen_path strings.c -DNAME='"/opt/lib/libibverbs.so.1"' &&
			cc -o other_loader needs_nothing.c nothing.c \
				-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1 &&
			cc -o lib_token main.c -Lplain -lrdmacm \
				-Wl,--disable-new-dtags,-rpath,'$ORIGIN/$LIB' &&
			cc -o relinked main.c -L"$lib" -lrdma_post
	} >out 2>err
	result programs_are_built $?
	rm -f libnothere.so
	printf '#!/bin/sh\n' >script
	mkdir directory
}

programs() {
	build
	program dynamic program.library ok "$lib/rdma_post/librdmacm.so.1" ./dynamic
	program runpath program.library ok "$lib/rdma_post/librdmacm.so.1" ./runpath
	program rpath program.library problem "DT_RPATH of ./rpath" ./rpath
	program rpath_to_nothing program.library ok "$lib/rdma_post" ./rpath_to_nothing
	program by_path program.library problem 'by its path' ./by_path
	program indirect program.library ok "$lib/rdma_post/librdmacm.so.1" ./indirect
	has program_later_version 'any(.findings[]; .check == "program.version" and
		.status == "problem" and (.what | contains("RDMACM_9.9 of librdmacm.so.1")))' \
		doctor -j -p ./later_version
	has program_other_loader 'any(.findings[]; .check == "program.loader" and
		.status == "note" and (.what | contains("/lib/ld-musl-x86_64.so.1")))' \
		doctor -j -p ./other_loader
	# What the loader of this host takes $LIB for, without subfolders for processors.
	local folder
	folder=$(LD_DEBUG=libs ./lib_token 2>&1 |
		sed -n "s|.*trying file=$dir/\(.*\)/librdmacm.so.1|\1|p" | tail -n 1)
	mkdir -p "$folder" && cp plain/librdmacm.so.1 "$folder"
	program lib_token program.library problem "DT_RPATH of ./lib_token" ./lib_token
	program missing program.dependency problem libnothere.so ./missing
	LD_LIBRARY_PATH=small program small program.library problem \
		'another kind of processor' ./small_program
	program static program.static problem librdma_post.a ./static
	program static_post program.library ok 'librdma_post linked in' ./static_post
	program dlopen program.dlopen ok 'by name' ./dlopen
	program dlopen_path program.dlopen problem 'a path of its own' ./dlopen_path
	LD_LIBRARY_PATH=$lib program relinked program.library ok librdma_post.so.1 ./relinked
	program script program.script note /bin/sh ./script
	program no_rdma program.no_rdma note plugin "$(command -v ls)"
	program by_search program.no_rdma note plugin ls
	PATH=:$PATH program by_search_here program.library ok "$lib/rdma_post" dynamic
	mkdir -p path/ls
	PATH=$PWD/path:$PATH program by_search_no_folder program.no_rdma note plugin ls
	program absent program.file problem 'no such program' ./absent
	mkfifo fifo
	local file
	for file in ./directory ./fifo /dev/zero /proc/cpuinfo; do
		program "${file##*/}" program.file problem 'no regular file' $file
	done
	program no_program program.file problem 'no program' ./main.c
	# The loader itself must agree where it can say so.
	LD_LIBRARY_PATH=$lib/rdma_post ldd ./rpath >out
	grep -q "librdmacm.so.1 => $dir/./plain\|librdmacm.so.1 => .*/plain/" out
	result loader_agrees_on_rpath $?
	LD_LIBRARY_PATH=$lib/rdma_post ldd ./runpath >out
	grep -q "librdmacm.so.1 => $lib/rdma_post" out
	result loader_agrees_on_runpath $?
}

# Whatever is in a file, doctor reports and ends.
broken_files() {
	local i size status bad=0
	: >out
	size=$(stat -c %s dynamic)
	for ((i = 0; i < 300; i++)); do
		if ((i < 100)); then
			head -c $((size * i / 100)) dynamic >broken
		else
			cp dynamic broken
			# Headers, the dynamic section's tables, and the last page.
			printf '%b' "\\x$(printf %x $((i * 37 % 256)))" |
				dd of=broken bs=1 conv=notrunc status=none \
					seek=$((i < 200 ? (i - 100) * 8 : (i * 7919) % size))
		fi
		timeout 60 "$tool" doctor -j -p ./broken >report 2>err
		status=$?
		if ((status > 1)) || ! jq -e .problems report >/dev/null; then
			echo "file $i: status $status" >>out
			bad=1
		fi
	done
	result broken_files $bad
}

# The node under both names, and nothing else. containers/containers.sh lets CDI's own schema
# and an engine judge it.
cdi_file() {
	jq -e '. == {cdiVersion: "0.3.0", kind: "rdma_post.local/node", devices: [{name: "all",
		containerEdits: {
			deviceNodes: [{path: "/dev/rdma_post", permissions: "rw"}],
			mounts: [{hostPath: "/dev/rdma_post",
				containerPath: "/dev/infiniband/rdma_post",
				options: ["bind", "nosuid", "noexec"]}]}}]}' "$1" >/dev/null
}

cdi() {
	status cdi_no_subcommand 2 '' 'no subcommand' cdi
	status cdi_unknown_subcommand 2 '' 'list: unknown subcommand' cdi list
	status cdi_argument 2 '' 'spare: unexpected argument' cdi generate spare
	status cdi_name 2 '' 'must end in .json' cdi generate -o cdi.yaml
	status cdi_no_name 2 '' 'must end in .json' cdi generate -o dir/.json
	status cdi_no_directory 2 '' 'nowhere/cdi.json: cannot write: No such file' \
		cdi generate -o nowhere/cdi.json
	mkdir directory.json
	status cdi_directory 2 '' 'not a regular file' cdi generate -o directory.json
	mkfifo fifo.json
	status cdi_fifo 2 '' 'not a regular file' cdi generate -o fifo.json
	"$tool" cdi generate >out 2>err && cdi_file out
	result cdi_prints $?
	(umask 077 && "$tool" cdi generate --output cdi.json) >out 2>err && [ ! -s out ] &&
		cdi_file cdi.json && [ "$(stat -c %a cdi.json)" = 644 ]
	result cdi_writes $?
	# A full disk: the old file stays, and no part of the new one.
	echo old >full.json
	(trap '' XFSZ && ulimit -f 0 && exec "$tool" cdi generate -o full.json) 2> >(cat >err)
	[ $? = 2 ] && [ "$(cat full.json)" = old ] && [ "$(echo full.json*)" = full.json ]
	result cdi_full_disk $?
	"$tool" cdi generate -o full.json 2>err && cdi_file full.json
	result cdi_replaces $?
}

# made NAME WANT DYNAMIC STRINGS: make a program of nothing but a dynamic section with these
# entries and strings, in assembly. doctor must end soon, and say if it has not looked at
# all (WANT is true or false).
made() {
	cat >made.s <<-END
		start:	.byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1
			.zero 9
			.short 3, 62
			.long 1
			.quad 0, 64, 0
			.long 0
			.short 64, 56, 2, 0, 0, 0
			.long 1, 4
			.quad 0, 0, 0, end - start, end - start, 4096
			.long 2, 4
			.quad dyn - start, dyn - start, dyn - start, strings - dyn, strings - dyn, 8
		dyn:	.quad 5, strings - start, 10, end - strings
			$3
			.quad 0, 0
		strings: .byte 0
			.asciz "libnothere.so"
			$4
			.byte 0
		end:
	END
	: >out
	as -o made.o made.s 2>err && objcopy -O binary -j .text made.o made 2>>err &&
		examine ./made && jq -e --argjson want "$2" '[.findings[].check] |
			index("program.file") == null and
			any(. == "program.large") == $want' out >/dev/null
	result "made_$1" $?
}

# 1 is DT_NEEDED, 29 DT_RUNPATH; 15 is the place of the second string.
made_files() {
	local needed='.quad 1, 1' ring='.quad 0x6ffffffe, ring - start, 0x6fffffff, 65535'
	made small false "$needed, 29, 15" '.ascii "/nowhere:/lib"'
	made libraries true '.set i, 15; .rept 300; .quad 1, i; .set i, i + 1; .endr' \
		'.fill 400, 1, 0x61'
	made entries true '.rept 200000; .quad 1, 15; .endr' '.fill 4000000, 1, 0x61'
	made unknown_entries true '.rept 200000; .quad 99, 15; .endr' '.fill 4000000, 1, 0x61'
	made long_list true "$needed, 29, 15" '.fill 2000000, 1, 0x3a'
	made list true "$needed, 29, 15" '.fill 3000, 1, 0x3a'
	made long_name true '.quad 1, 15' '.fill 20000, 1, 0x61'
	# Versions that are all the same one.
	made versions true "$needed; $ring" '.asciz "VERSION"
		ring: .short 1, 65535; .long 1, 16, 0
		.long 0; .short 0, 0; .long 15, 0'
}

echo "TAP version 13"
options
completion
colours
json
cdi
programs
made_files
broken_files
end_tap
