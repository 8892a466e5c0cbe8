#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/tools/check.sh [-ar] [-T MINUTES] [-n N] [-k KERNEL]... [-d sim|fast] [TEST...]
#
# Builds everything, boots guests and runs tests in them. Each step prints a line
# with its counts and its time; the last line is "N passed, N failed, N skipped", and
# before it stand what failed, what passed another time (FLAKY), and what could not be
# run. Without arguments it is what a change must pass: Debian 12's kernel 6.1 in full;
# 6.12 and 7.2, in turn, one in full and one with a few tests; some others in turn; and
# what needs KASAN and lockdep if their kernel is in the cache. The first lines say
# what is in it.
#
#   -k KERNEL   test only on this kernel, in full: 6.1, 6.12, 7.2, or one with KASAN and
#               lockdep (debug, debug-6.1) or KCSAN (debug-kcsan), which is built first
#               if it is not cached
#   -d sim      run the TESTs on rdmasim, those of the library over librdma_post only
#   -d fast     the same with fast registration on rxe
#   -a          everything: all kernels in full, all programs with KASAN, lockdep and
#               KCSAN, the fuzzer, Debian's programs, containers, sanitizers, lint, ...
#   -T MINUTES  stop after this time; what was not run is listed, and the run fails
#   -n N        take turns as if there were N commits
#   -r          go on where the last run stopped: a guest that has passed in this build
#               folder is not run again if it would boot the same files
#   TEST        only these: a folder of selftests/ ("cq"), a program of the kernel
#               interface ("cq_share"), of the library ("api/comp"), or all of the
#               latter ("api"), or those of rdma-post ("doctor"); on 6.1 or the kernel
#               of -k
#
# JOBS steps run at a time, by default as many as there are CPUs.
#
# Exit status: 0 if nothing failed and all could be run; 2 for bad arguments.  Logs are in
# build/check.

# The steps are functions that step and tap call by name.
# shellcheck disable=SC2317

set -uo pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$top_dir" || exit 1
die_status=2

all='' kernels=() minutes='' commits='' device_tests='' RPOST_RESUME=''
while getopts hark:d:n:T: opt; do
	case $opt in
	a) all=1 ;;
	r) RPOST_RESUME=1 ;;
	k) kernels+=("$OPTARG") ;;
	d) device_tests=${OPTARG}_tests ;;
	n) commits=$OPTARG ;;
	T) minutes=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
subjects=("$@")
for kernel in "${kernels[@]}"; do
	case $kernel in
	6.1 | 6.12 | 7.2 | debug | debug-6.1 | debug-kcsan) ;;
	*) die "$kernel: kernels are 6.1, 6.12, 7.2, debug, debug-6.1 and debug-kcsan" ;;
	esac
done
[[ $device_tests =~ ^((sim|fast)_tests)?$ ]] || die "-d ${device_tests%_tests}: sim or fast"
[ -z "$device_tests" ] || [ ${#subjects[@]} != 0 ] || die "-d: no TEST"
[[ $minutes =~ ^[1-9][0-9]*$|^$ ]] || die "-T $minutes: a number of minutes"
[[ $commits =~ ^[0-9]*$ ]] || die "-n $commits: a number of commits"

need_room "$build_dir" 2000

# What has passed, for -r (see vm/run.sh)
RPOST_PASSED=$build_dir/passed
if [ -z "$RPOST_RESUME" ]; then
	rm -rf "$RPOST_PASSED"
elif [ ! -d "$RPOST_PASSED" ]; then
	die "-r: there was no run in $build_dir"
fi
mkdir -p "$RPOST_PASSED"
export RPOST_PASSED RPOST_RESUME

# names_in needs make, which may not be installed yet.
"$vm_dir/deps.sh" build >&2 || exit
read -ra all_programs < <(names_in selftests/tests.mk RPOST_TESTS)
read -ra smp_programs < <(names_in selftests/tests.mk RPOST_TESTS_SMP)
failure_points=(inject inject_mr failnth)
read -ra api_programs < <(names_in selftests/api/tests.mk API_TESTS)

# choose SUBJECT...: set chosen and chosen_api to the programs of these subjects
choose() {
	local subject name n
	chosen=() chosen_api=() chosen_doctor=''
	for subject; do
		n=$((${#chosen[@]} + ${#chosen_api[@]}))
		if [ "$subject" = doctor ]; then
			chosen_doctor=1
			continue
		fi
		for name in "${all_programs[@]}"; do
			[[ $name != "$subject" && ($subject == api ||
				! -e selftests/$subject/$name.c) ]] ||
				chosen+=("$name")
		done
		for name in "${api_programs[@]}"; do
			[[ $subject != api && $subject != "api/$name" ]] ||
				chosen_api+=("$name")
		done
		[ $((${#chosen[@]} + ${#chosen_api[@]})) -gt "$n" ] ||
			die "$subject: no folder or program of the tests"
	done
}
choose "${subjects[@]}"

. selftests/tools/steps.sh

build() {
	make -s -j"$(nproc)" lib tools tests examples &&
		make -s -C examples LIB=system &&
		make -s -C selftests/bench OUT="$build_dir/bench" &&
		make -s -j"$(nproc)" -C selftests 32-bit
}

libc_only() {
	local needed
	needed=$(objdump -p "$build_dir/lib/librdma_post.so" |
		awk '$1 == "NEEDED" { print $2 }')
	echo "needs: $needed"
	[ "$needed" = libc.so.6 ]
}

# make install brings what it should, and make uninstall leaves what is of others
install_tree() {
	local dest=$logs/install theirs=$logs/install/usr/lib/rdma_post/theirs version name
	rm -rf "$dest"
	version=$(release_version)
	make -s install DESTDIR="$dest" PREFIX=/usr || return
	for name in lib/{librdma_post.{so.1,a},rdma_post/{libibverbs,librdmacm}.so.1} \
		lib/{pkgconfig/rdma_post.pc,cmake/rdma_post/rdma_post-config.cmake} \
		lib/udev/rules.d/90-rdma-post.rules include/rdma/rdma_post_abi.h \
		share/{bash-completion/completions/rdma-post,zsh/site-functions/_rdma-post} \
		share/fish/vendor_completions.d/rdma-post{,-run}.fish \
		share/zsh/site-functions/_rdma-post-run; do
		test -e "$dest/usr/$name" || { echo "no $name" && return 1; }
	done
	for name in rdma-post rdma-post-run; do
		test "$("$dest/usr/bin/$name" --version)" = "$name $version" || return
	done
	manual_pages "$dest/usr/share/man" &&
		touch "$theirs" &&
		make -s uninstall DESTDIR="$dest" PREFIX=/usr &&
		find "$dest" -type f -o -type l &&
		[ "$(find "$dest" -type f -o -type l)" = "$theirs" ]
}

# man finds each page, and each function of our own has one.
manual_pages() {
	local section page
	while read -r section page; do
		man -M "$1" -w "$section" "$page" || return
	done < <(printf '%s\n' '1 rdma-post-run' '4 rdma_post' '7 rdma_post' '8 rdma-post' &&
		sed -n 's/^[a-z].*\b\(rdma_post_[a-z_]*\)(.*/3 \1/p' \
			userlib/include/rdma/rdma_post.h)
}

# The commands by which tests remove the device, and bring it back.
device=('RPOST_TEST_REMOVE=rdma link del rxe0'
	'RPOST_TEST_ADD=rdma link add rxe0 type rxe netdev dummy0')

# The commands by which tests take the network down and up, and the one that prints an
# address that is resolved late: a dummy device resolves all others at once.
network=('RPOST_TEST_DOWN=ip link set dummy0 down'
	'RPOST_TEST_UP=ip link set dummy0 up && ip addr add fd00::1/64 dev dummy0 nodad'
	'RPOST_TEST_LATE=ip neigh replace 10.0.0.77 dev dummy0 nud failed && echo 10.0.0.77')

# programs DIRECTORY TEST...: set files, for run.sh, and names, for run_tests.sh; a TEST
# api/NAME is the program over librdma_post
programs() {
	local directory=$1 test
	shift
	files=() names=()
	for test; do
		[[ $test != api/* ]] || test=$test-rpost
		files+=(-f "$directory/$test")
		names+=("./${test##*/}")
	done
}

# guest KERNEL ARGS...: call run.sh with ARGS and a time limit
guest() {
	local limit=1500 counted=${counted-}
	[[ $1 != debug* ]] || limit=4500
	# KCSAN looks for what meets.
	[[ $1 != *kcsan ]] || counted=''
	"$vm_dir/run.sh" -k "$1" -t "$limit" -o "$build_dir/vm/check-$step${again:+.$again}" \
		${counted:+-I} "${@:2}"
}

# counted COMMAND...: run it in guests that count instructions: they have one CPU, and do
# not notice the load of the host
counted() {
	local counted=1
	"$@"
}

# How guests run whose threads need not meet; empty: like the others, on two CPUs
counting=counted

# spread STEP COMMAND... -- TEST...: queue steps that call the command with some of the
# tests. Those whose threads need not meet count instructions, in two guests beside each
# other.
spread() {
	local step=$1 command=() name one=() two=() smp=()
	while shift && [ "$1" != -- ]; do
		command+=("$1")
	done
	shift
	for name; do
		if [[ -z $counting || " ${smp_programs[*]} " == *" $name "* ]]; then
			smp+=("$name")
		elif [ ${#one[@]} -gt ${#two[@]} ]; then
			two+=("$name")
		else
			one+=("$name")
		fi
	done
	[ ${#smp[@]} = 0 ] || queue tap "$step-smp" "${command[@]}" "${smp[@]}"
	[ ${#one[@]} = 0 ] || queue tap "$step-1" counted "${command[@]}" "${one[@]}"
	[ ${#two[@]} = 0 ] || queue tap "$step-2" counted "${command[@]}" "${two[@]}"
}

# target_module KERNEL: build the page at which the probe aims, and set target for run.sh
target_module() {
	target=(-i "$build_dir/target-$1/target.ko")
	"$vm_dir/kmod.sh" -s selftests/target "$1"
}

# kernel_tests KERNEL BITS TEST...: run tests of the kernel interface, as 64-bit
# programs (BITS is empty) or as 32-bit programs (-32)
kernel_tests() {
	local kernel=$1 bits=$2 files names slow=() target
	# With lockdep, each queue pair of 7.2's rxe holds the module (see
	# rxe_reclassify_send_socket()), and ib_mad has one for each device: the driver
	# stays. Nobody has tried it on debug-6.1.
	local by_kernel=(RPOST_TEST_SLOW=1)
	[[ $kernel == debug* ]] || by_kernel=('RPOST_TEST_UNBIND=rmmod rdma_rxe'
		'RPOST_TEST_BIND=modprobe rdma_rxe && rdma link add rxe0 type rxe netdev dummy0')
	programs "$build_dir/selftests$bits" "${@:3}"
	target_module "$kernel" || return
	# The kernel with KCSAN has no kprobes.
	if [[ $kernel != *kcsan ]]; then
		"$vm_dir/kmod.sh" -s selftests/slow_routes "$kernel" || return
		slow=(-i "$build_dir/slow_routes-$kernel/slow_routes.ko")
	fi
	# shellcheck disable=SC2016
	guest "$kernel" "${slow[@]}" "${target[@]}" \
		-f selftests/tools/run_tests.sh "${files[@]}" -- \
		env "${device[@]}" \
		"${network[@]}" "${by_kernel[@]}" \
		RPOST_TEST_MODULE=/vm/modules/rdma_post.ko \
		RPOST_TEST_DIR=/disk \
		sh -c 'vm-disk /disk && exec "$@"' sh ./run_tests.sh "${names[@]}"
}

# fast_tests KERNEL TEST...: run tests with the way of registration that auto does not
# take on rxe
fast_tests() {
	local files names
	programs "$build_dir/selftests" "${@:2}"
	# shellcheck disable=SC2016
	"$vm_dir/kmod.sh" -s selftests/qp_error "$1" &&
		guest "$1" -p registration=fast \
			-i "$build_dir/qp_error-$1/qp_error.ko" \
			-f selftests/tools/run_tests.sh "${files[@]}" -- \
			env "${device[@]}" \
			RPOST_TEST_DIR=/disk RPOST_TEST_LINK=yes \
			sh -c 'vm-disk /disk && exec "$@"' sh ./run_tests.sh "${names[@]}"
}

# Run the programs that register memory; on the debug kernels with every failure point, too.
fast_registration() {
	local tests=(fastreg mr keys keys_remote post post_queues)
	tests+=(exit attack_keys attack_memory attack_threads)
	[[ $1 != debug* ]] || tests+=("${failure_points[@]}")
	spread "fast-registration-$1" fast_tests "$1" -- "${tests[@]}"
}

# iWARP
siw_tests() {
	local files names
	programs "$build_dir/selftests" device mr handover cq cq_prompt
	guest "$1" -n siw -f selftests/tools/run_tests.sh "${files[@]}" -- \
		./run_tests.sh "${names[@]}"
}

# Peers read more of siw's memory than they may (Documentation/devices.rst).
siw_probe() {
	local target
	target_module "$1" &&
		guest "$1" -n siw "${target[@]}" -f selftests/tools/probe_vices.sh \
			-f "$build_dir/selftests/probe" -- \
			./probe_vices.sh ./probe holds.no_access_that_was_not_granted
}

# sim_guest KERNEL VICES COMMAND...: run a command in a guest with rdmasim and
# the files that programs has set
sim_guest() {
	local vices=$2 target
	# shellcheck disable=SC2016
	"$vm_dir/kmod.sh" -s selftests/rdmasim "$1" && target_module "$1" &&
		guest "$1" -n sim "${target[@]}" ${vices:+-P "$vices"} \
			-f selftests/tools/run_tests.sh "${files[@]}" -- \
			env 'RPOST_TEST_REMOVE=rdma link del sim0' \
			'RPOST_TEST_ADD=rdma link add sim0 type sim netdev dummy0' \
			'RPOST_TEST_UNBIND=rmmod rdmasim' \
			"RPOST_TEST_BIND=insmod /vm/rdmasim.ko $vices &&
				rdma link add sim0 type sim netdev dummy0" \
			"${network[@]}" \
			RPOST_TEST_MODULE=/vm/modules/rdma_post.ko \
			RPOST_TEST_PARAMS=devices=rdmasim RPOST_TEST_DIR=/disk \
			RPOST_TEST_LINK=yes \
			sh -c 'vm-disk /disk && exec "$@"' sh "${@:3}"
}

# sim_tests KERNEL VICES TEST...: run tests on rdmasim
sim_tests() {
	local files names
	programs "$build_dir/selftests" "${@:3}"
	sim_guest "$1" "$2" ./run_tests.sh "${names[@]}"
}

# Run the probe, then the programs that each set of vices concerns.
sim_vices() {
	local files names
	programs "$build_dir/selftests" "${all_programs[@]}"
	files+=(-f selftests/tools/probe_vices.sh -f selftests/tools/sim_vices.sh)
	# shellcheck disable=SC2016
	sim_guest "$1" '' sh -c './probe_vices.sh ./probe
		status=$?
		./sim_vices.sh && exit $status'
}

# Run all tests of dma-bufs, which rxe does not have, nor Debian's 6.1.
sim_dmabufs() {
	local files names
	programs "$build_dir/selftests" dmabuf
	files+=(-f "$build_dir/selftests/api/dmabuf-rpost")
	sim_guest "$1" '' ./run_tests.sh ./dmabuf ./dmabuf-rpost
}

# Run all tests on a device without vices. Leave out admit, which needs a device that
# the module offers by default, tests of the cache, which keeps no regions of fast
# registration, and dmabuf.
sim_programs() {
	local kernel=$1 name names=()
	for name in "${all_programs[@]}"; do
		[[ $name =~ ^(admit|dmabuf|mr_cache|mr_cache_race)$ ]] || names+=("$name")
	done
	spread "rdmasim-$kernel" sim_tests "$kernel" '' -- "${names[@]}" \
		"${api_programs[@]/#/api/}"
}

# api_tests KERNEL [TEST...]: run tests, by default all, over both libraries
api_tests() {
	# shellcheck disable=SC2016
	guest "$1" \
		-f "$build_dir/selftests/api" -f selftests/api/compare.sh -- \
		env "${device[@]}" RPOST_TEST_LINK=yes RPOST_TEST_DIR=/disk \
		sh -c 'vm-disk /disk && exec ./compare.sh ./api "$@"' sh "${@:2}"
}

# Run a few tests of each kind.
smoke() {
	local files names
	programs "$build_dir/selftests" abi device mr qp post post_queues cq cq_prompt srq \
		srq_limits datagram datagram_addresses cm cm_states exit
	guest "$1" -f "$build_dir/selftests/api" -f selftests/api/compare.sh \
		-f selftests/tools/run_tests.sh "${files[@]}" -- sh -c "
			./run_tests.sh ${names[*]}
			status=\$?
			./compare.sh ./api posts cm && exit \$status"
}

# Compare the 32-bit library with the 64-bit libraries of the system.
api_tests_32() {
	local files=() program name
	for program in "$build_dir"/selftests-32/api/*-rpost; do
		name=${program##*/}
		name=${name%-rpost}
		files+=(-f "$program:/root/api/$name-rpost"
			-f "$build_dir/selftests/api/$name-sys:/root/api/$name-sys")
	done
	guest "$1" -f "$build_dir/selftests-32/lib:/root/lib32" "${files[@]}" \
		-f selftests/api/compare.sh -- \
		env LD_LIBRARY_PATH=/root/lib32:/usr/lib32 ./compare.sh ./api
}

# suite_programs SUITE: write SUITE.tar, with all files that its programs need, or
# SUITE.missing with the reason
suite_programs() {
	local root=$cache_dir/rdma/$1 dir=$build_dir/unmodified/$1 name
	rm -rf "$dir" "$dir".*
	mkdir -p "$dir"
	if ! "$vm_dir/fetch.sh" "rdma-$1"; then
		echo "cannot fetch $1's packages" >"$dir.missing"
		return
	fi
	for name in ld-linux-x86-64.so.2 libc.so.6 libm.so.6; do
		cp "$root"/usr/lib/x86_64-linux-gnu/"$name" "$dir/"
	done
	cp "$root"/usr/bin/{rping,ucmatose,ibv_devinfo,ibv_rc_pingpong} "$dir/"
	tar -C "${dir%/*}" -cf "$dir.tar" "$1"
}

unmodified_programs() {
	local suite suites=(trixie sid) files=()
	for suite in "${suites[@]}"; do
		suite_programs "$suite"
		files+=(-f "$(echo "$build_dir/unmodified/$suite".*)")
	done
	# shellcheck disable=SC2016
	echo 'int main(void) { return 0; }' |
		cc -x c - -o "$build_dir/unmodified/rpath" -Wl,--no-as-needed -lrdmacm \
			-Wl,--disable-new-dtags,-rpath,'$ORIGIN/elsewhere' || return 1
	make -s -C userlib/tests BUILD="$build_dir" \
		"$build_dir/userlib/tests/rpost_only" &&
		guest 6.1 \
			-f "$build_dir/bin" -f "$build_dir/lib" \
			-f "$build_dir/userlib/tests/rpost_only" \
			-f "$build_dir/unmodified/rpath" "${files[@]}" \
			-f /sbin/getcap -f /sbin/setcap \
			-f selftests/lib/tap.sh -f selftests/tools/unmodified.sh -- sh -c \
			"./unmodified.sh bin/rdma-post-run ${suites[*]} &&
			LD_LIBRARY_PATH=lib ./rpost_only"
}

# tool_guest KERNEL SCRIPT OPTION...: run a test of rdma-post of the folder doctor/, with
# these options of run.sh
tool_guest() {
	guest "$1" -f "$build_dir/bin" -f "$build_dir/lib" -f "$(command -v jq)" \
		-f selftests/lib/tap.sh -f "selftests/doctor/$2" "${@:3}" -- "./$2"
}

# build_helper NAME: a program that a script of the folder doctor/ runs
build_helper() {
	mkdir -p "$build_dir/selftests"
	"${CC:-cc}" -O2 -Wall -Wextra -Iuapi -o "$build_dir/selftests/$1" "selftests/doctor/$1.c"
}

# doctor KERNEL: break things that rdma-post doctor must name. The module's file is changed
# so that this kernel refuses it: other flags of the build, another version of a symbol.
doctor() {
	local dir=$build_dir/doctor-$1 ko=$build_dir/kmod-$1/rdma_post.ko
	mkdir -p "$dir"
	perl -0777 -pe 's/vermagic=.(\S+) SMP/vermagic=5$1 UMP/' "$ko" >"$dir/vermagic.ko" &&
		perl -0777 -pe 's/.{4}(.{4}ib_register_client\0\0)/XXXX$1/s' "$ko" \
			>"$dir/symbols.ko" &&
		strip --strip-debug "$dir"/*.ko &&
		"$vm_dir/kmod.sh" -s selftests/rdmasim "$1" &&
		tool_guest "$1" doctor.sh -f /sbin/setcap -f "$(command -v unshare)" \
			-f "$(command -v script)" -f "$dir/vermagic.ko" -f "$dir/symbols.ko" \
			-i "$build_dir/rdmasim-$1/rdmasim.ko"
}

# files KERNEL: look at the open files of programs with traffic. Prometheus' own checker,
# where it is installed, judges the format, too.
files() {
	local fuse=()
	mapfile -t fuse < <(find "$cache_dir/kernels/$1/root/" -name fuse.ko)
	build_helper hold &&
		tool_guest "$1" files.sh -f "$build_dir/selftests/hold" "${fuse[@]/#/-i}" \
			-f "$(command -v tmux)" -f /usr/lib/locale/C.utf8:/usr/lib/locale/C.utf8 \
			-f /lib/terminfo/s/screen:/lib/terminfo/s/screen || return
	! command -v promtool >/dev/null ||
		promtool check metrics <"$build_dir/vm/check-$step/out/metrics"
}

# limits KERNEL: policies as the user writes and reads them
limits() {
	build_helper open_mode &&
		make -s -C examples BUILD="$build_dir" "$build_dir/examples/hello" &&
		tool_guest "$1" limit.sh -f "$build_dir/selftests/open_mode" \
			-f "$build_dir/examples/hello" -f "$(command -v setpriv)"
}

# trace KERNEL: show what real traffic does, and leave nothing in tracefs. One CPU, since
# the kernel patches its code each time that tracepoints go on or off.
trace() {
	tool_guest "$1" trace.sh -s 1 -f "$(command -v script)" -f "$(command -v env)" \
		-f /usr/lib/locale/C.utf8:/usr/lib/locale/C.utf8
}

doctor_tests() {
	tap tool selftests/doctor/tool.sh
	tap "doctor-$1" doctor "$1"
	tap "doctor-peer-$1" selftests/doctor/peer.sh -k "$1"
	tap "files-$1" files "$1"
	tap "limits-$1" limits "$1"
	tap "trace-$1" trace "$1"
}

# Run programs that symbols.sh has built with newer headers over the library.
newer_headers() {
	if [ ! -e "$build_dir/selftests/api-sid/posts-rpost" ]; then
		echo "ok 1 newer_headers # SKIP not built, see $logs/symbols.log"
		echo "1..1"
		return
	fi
	guest 6.1 \
		-f "$build_dir/selftests/api-sid" -f selftests/api/compare.sh -- \
		./compare.sh ./api-sid posts posts_flags comp comp_own_cq comp_cntr device
}

# Print the interpreter, and the files of the modules that a program imports.
python_files() {
	echo /usr/bin/python3
	/usr/bin/python3 -S - "$1" <<-'END'
		import os, runpy, sys
		runpy.run_path(sys.argv[1])
		for module in list(sys.modules.values()):
		    for name in "__file__", "__cached__":
		        path = getattr(module, name, None)
		        if path and os.path.exists(path):
		            print(path)
	END
}

example_programs() {
	local dir python status=0
	dir=$(mktemp -d "$build_dir/projects.XXXXXX") || return
	mapfile -t python < <(LD_LIBRARY_PATH=$build_dir/lib python_files examples/hello.py |
		sed 's/.*/-f\n&:&/')
	selftests/tools/projects.sh "$dir" >"$dir/log" 2>&1 || cat "$dir/log"
	guest "$1" \
		-f "$build_dir/examples:/opt/ours" \
		-f "$build_dir/examples-system:/opt/system" \
		-f "$dir/programs:/opt/projects" \
		"${python[@]}" -f examples/hello.py:/opt/ours/hello.py \
		-f "$(command -v script)" -f selftests/lib/tap.sh -f selftests/tools/examples.sh -- \
		./examples.sh /opt/ours /opt/system /opt/projects 10.0.0.1 || status=$?
	rm -r "$dir"
	return "$status"
}

# fuzz KERNEL SECONDS: run the fuzzer's corpus, and programs that it generates
fuzz() {
	once step "fuzz-$1" selftests/fuzz/fuzz.sh -k "$1" -t "$2" \
		-o "$build_dir/fuzz-check.$1"
}

# Test that the benchmark works. The log has its figures, which nothing judges.
bench_smoke() {
	selftests/bench/bench.sh -k "$1" -s smoke -r 1
}

# The lines of both hosts come as they are printed, without a progress.
file_transfer() {
	local out status=0
	out=$(examples/demo.sh 2>&1) || status=$?
	echo "$out"
	[ "$status" = 0 ] && [[ $out != *$'\r'* ]] &&
		awk '/^[AB]: / && !/: vm: / { exit !/^A: listening/ }' <<<"$out"
}

# Test that gdb stops a program in the module, names the place, and continues it.
gdb_stops() {
	local out
	out=$(timeout 900 selftests/vm/gdb.sh -c 'hello & until hello 10.0.0.1; do sleep 0.2; done' -- \
		-batch -ex 'break rpost_post' -ex continue \
		-ex backtrace -ex delete -ex detach 2>&1)
	echo "$out"
	grep -q '^#0 .*rpost_post (.*kmod/post/post\.c:' <<<"$out" &&
		grep -q '^#[0-9].* in __x64_sys_ioctl ()' <<<"$out" &&
		grep -q '^hello, client' <<<"$out"
}

# Test that a script in the guest finds the tree, the module and the new programs, and does
# what the quick start shows.
shell_script() {
	local out status=0
	out=$({
		echo 'ls -1 /tree /build/bin'
		selftests/tools/quickstart.sh script "In a guest"
		echo 'exit 42'
	} | selftests/vm/shell.sh -t 600) || status=$?
	echo "$out"
	echo "exit status $status"
	[ "$status" = 42 ] && grep -qx Makefile <<<"$out" &&
		grep -qx rdma-post-run <<<"$out" &&
		selftests/tools/quickstart.sh compare "In a guest" <<<"$out"
}

symbols_and_headers() {
	tap symbols selftests/tools/symbols.sh
	tap library-newer-headers newer_headers
}

# world COMMAND...: run what needs the network and room
world() { "$@" || return 125; }

# get_kernels KERNEL...: fetch them, or build those for debugging
get_kernels() {
	local kernel
	for kernel; do
		case $kernel in
		debug*) once step "kernel-$kernel" "$vm_dir/debug-kernel.sh" "$kernel" ;;
		*) once step "kernel-$kernel" world "$vm_dir/fetch.sh" "$kernel" ;;
		esac || finish
	done
}

# get_debian_kernels: fetch those that Debian still has, and set here to them
get_debian_kernels() {
	local kernel reason status
	here=()
	for kernel in 6.1 6.12 7.2; do
		status=0
		reason=$("$vm_dir/fetch.sh" "$kernel" 2>&1 >/dev/null) || status=$?
		case $status in
		0) here+=("$kernel") ;;
		3) left_out+=("LEFT OUT $kernel: ${reason##*$'\n'}") ;;
		*) echo "${reason##*$'\n'}" >"$logs/kernel-$kernel.not-run" ;;
		esac
	done
	[ -z "$(ls "$logs"/*.not-run 2>/dev/null)" ] || finish
}

# is_here KERNEL: has Debian this kernel still?
is_here() { [[ " ${here[*]} " == *" $1 "* ]]; }

# on KERNEL COMMAND...: queue a step if the kernel is there
on() { ! is_here "$1" || queue "${@:2}"; }

# build_module KERNEL
build_module() { once step "module-$1" "$vm_dir/kmod.sh" "$1"; }

# Run the chosen tests on one kernel.
check_subjects() {
	local kernel=${kernels[0]:-6.1}
	get_kernels "$kernel"
	[ ${#chosen[@]} = 0 ] || once step build make -s -j"$(nproc)" -C selftests \
		BUILD="$build_dir" "${chosen[@]/#/$build_dir/selftests/}" || finish
	[ ${#chosen_api[@]} = 0 ] || once step build-library make -s -j"$(nproc)" lib tests ||
		finish
	[ -z "$chosen_doctor" ] || once step build-tools make -s -j"$(nproc)" lib tools ||
		finish
	build_module "$kernel" || finish
	[ -z "$chosen_doctor" ] || queue doctor_tests "$kernel"
	case $device_tests in
	sim_tests) spread "rdmasim-$kernel" sim_tests "$kernel" '' -- \
		"${chosen[@]}" "${chosen_api[@]/#/api/}" ;;
	fast_tests) spread "fast-registration-$kernel" fast_tests "$kernel" -- \
		"${chosen[@]}" "${chosen_api[@]/#/api/}" ;;
	esac
	[ -z "$device_tests" ] || return 0
	[ ${#chosen[@]} = 0 ] || interface_tests "$kernel" "${chosen[@]}"
	[ ${#chosen_api[@]} = 0 ] || queue tap "library-$kernel" \
		counted api_tests "$kernel" "${chosen_api[@]}"
}

# interface_tests KERNEL TEST...: queue tests of the kernel interface
interface_tests() { spread "kernel-interface-$1" kernel_tests "$1" "" -- "${@:2}"; }

# Run 32-bit programs of the kernel interface, if 6.12 is there.
interface_tests_32() {
	! is_here 6.12 ||
		spread kernel-interface-32-bit kernel_tests 6.12 -32 -- "${programs_32[@]}"
}

# Run all tests that a kernel takes part in.
check_kernel() {
	local kernel=$1
	interface_tests "$kernel" "${all_programs[@]}"
	# Races between threads are in the kernel interface's tests.
	[ "$kernel" != debug-kcsan ] || return 0
	queue tap "library-$kernel" ${counting:+"$counting"} api_tests "$kernel"
}

# Run what else there is on a kernel.
check_more() {
	local kernel=$1
	[ "$kernel" != debug-kcsan ] || return 0
	queue tap "examples-$kernel" example_programs "$kernel"
	fast_registration "$kernel"
	[ "$kernel" != debug ] || siw "$kernel"
}

# siw KERNEL: run all that there is for siw; the probe waits for most of its time
siw() {
	queue tap siw-probe siw_probe "$1"
	queue tap siw siw_tests "$1"
}

# Run all tests on the kernels of -k.
check_kernels() {
	local kernel
	get_kernels "${kernels[@]}"
	once step build build || finish
	for kernel in "${kernels[@]}"; do
		build_module "$kernel" || finish
		check_kernel "$kernel"
		check_more "$kernel"
	done
}

# turn EVERY N: print whose turn it is, 0 to N - 1; it passes on after EVERY commits
turn() { echo $((commits / $1 % $2)); }

# Print the programs of the kernel interface that are run with KASAN this time: a quarter
# of all, the failure points, and those whose file has changed in the last 50 commits.
debug_programs() {
	local changed i
	changed=$(git log -50 --format= --name-only -- selftests 2>/dev/null)
	for ((i = 0; i < ${#all_programs[@]}; i++)); do
		if [ $((i % 4)) = "$(turn 8 4)" ] ||
			[[ $changed == */"${all_programs[i]}".c* ||
				" ${failure_points[*]} " == *" ${all_programs[i]} "* ]]; then
			echo "${all_programs[i]}"
		fi
	done
}

# Run what a change must pass.
check_gate() {
	local history='' full=6.12 few=7.2 extra names kernel
	local extras=("rdmasim's programs" "fast registration" "32 bit" "examples")
	[ -n "$commits" ] || commits=$([ "$(git rev-parse --is-shallow-repository)" = false ] &&
		git rev-list --count HEAD 2>/dev/null) ||
		{ commits=0 && history=' (there is no history to take turns by)'; }
	[ "$(turn 8 2)" = 0 ] || full=7.2 few=6.12
	extra=$(turn 16 4)
	note "6.1 in full, $full in full, $few in part; in turn: ${extras[extra]}$history"

	once step packages world "$vm_dir/deps.sh" build guests || finish
	once step kselftest world "$vm_dir/fetch.sh" kselftest || finish
	get_debian_kernels
	is_here "$full" || full=$few few=''
	once step build build || finish
	for kernel in "${here[@]}"; do
		build_module "$kernel" || finish
	done
	for kernel in 6.1 "$full"; do
		! is_here "$kernel" || check_kernel "$kernel"
	done
	on "$few" tap "smoke-$few" counted smoke "$few"
	if "$vm_dir/debug-kernel.sh" --cached debug; then
		mapfile -t names < <(debug_programs)
		note "with KASAN and lockdep: ${#names[@]} of ${#all_programs[@]} programs," \
			"failure points, the fuzzer's corpus, siw"
		build_module debug || finish
		interface_tests debug "${names[@]}"
		queue fuzz debug 0
		queue tap siw counted siw_tests debug
		queue tap rdmasim-dmabuf-debug sim_dmabufs debug
	else
		left_out+=("LEFT OUT: KASAN and lockdep; selftests/vm/debug-kernel.sh builds their \
kernel, in eleven minutes, and is best run in the background when a day's work begins")
		note "${left_out[@]}"
	fi
	for kernel in "${here[@]}"; do
		queue once step "rdmasim-module-$kernel" \
			"$vm_dir/kmod.sh" -s selftests/rdmasim "$kernel"
	done
	queue tap rdmasim-probe-6.1 counted sim_tests 6.1 '' probe
	queue tap rdmasim-vices counted sim_vices 6.1
	on "$full" tap "rdmasim-dmabuf-$full" sim_dmabufs "$full"
	case $extra in
	0) sim_programs 6.1 ;;
	1) fast_registration 6.1 ;;
	2) interface_tests_32
		on 6.12 tap library-32-bit counted api_tests_32 6.12 ;;
	3) queue tap examples-6.1 example_programs 6.1 ;;
	esac
	queue once tap bench-check selftests/bench/icount.sh 6.1
	queue once tap bench-check-inline selftests/bench/icount.sh -e 6.1
	queue step two-hosts-file-transfer file_transfer
	queue once tap tool selftests/doctor/tool.sh
	queue once tap symbols selftests/tools/symbols.sh
	queue once tap steps selftests/tools/steps_test.sh
	queue once tap fetch selftests/tools/fetch_test.sh
	queue once step library-needs-libc-only libc_only
	queue once step install install_tree
	queue once tap lint-of-changes selftests/tools/lint.sh -c
}

# Run everything; with KASAN on two CPUs, too. Long steps come first, so that no slot is
# idle at the end.
check_all() {
	local kernel
	once step packages world "$vm_dir/deps.sh" build guests gdb || finish
	once step kselftest world "$vm_dir/fetch.sh" kselftest || finish
	get_debian_kernels
	once step build build || finish
	for kernel in "${here[@]}"; do
		build_module "$kernel" || finish
	done
	# Build the debug kernel while stock ones are tested.
	nice "$vm_dir/debug-kernel.sh" debug >"$logs/debug-kernel.log" 2>&1 &
	disown
	for kernel in "${here[@]}"; do
		check_kernel "$kernel"
	done
	for kernel in "${here[@]}"; do
		check_more "$kernel"
	done
	for kernel in "${here[@]}"; do
		sim_programs "$kernel"
	done
	queue tap rdmasim-vices counted sim_vices 6.1
	on 6.12 tap rdmasim-dmabuf-6.12 sim_dmabufs 6.12
	on 7.2 tap rdmasim-dmabuf-7.2 sim_dmabufs 7.2
	# make check-packages takes Debian 13, too.
	queue tap packages-debian selftests/packages/packages.sh bookworm
	queue tap interop selftests/interop/interop.sh -q "${here[@]}"
	queue tap two-hosts-faults-6.1 selftests/wire/wire.sh -k 6.1
	queue tap library-asan selftests/tools/sanitize.sh asan
	interface_tests_32
	queue fuzz 6.1 15
	queue once tap lint selftests/tools/lint.sh
	queue once tap bench-check selftests/bench/icount.sh "${here[@]}"
	queue once tap bench-check-inline selftests/bench/icount.sh -e 6.1
	queue symbols_and_headers
	on 6.12 tap library-32-bit counted api_tests_32 6.12
	queue tap unmodified-programs unmodified_programs
	queue doctor_tests 6.1
	on 7.2 tap doctor-7.2 doctor 7.2
	on 7.2 tap trace-7.2 trace 7.2
	queue tap abi-compat selftests/tools/abi_compat.sh
	queue step bench-smoke-6.1 bench_smoke 6.1
	on 7.2 step bench-smoke-7.2 bench_smoke 7.2
	queue step two-hosts-file-transfer file_transfer
	queue step gdb gdb_stops
	queue step shell shell_script
	queue once step library-needs-libc-only libc_only
	queue once step install install_tree
	queue tap packages-kbuild selftests/packages/kbuild.sh
	queue tap packages-rpm selftests/packages/rpm.sh
	queue tap packages-upstream selftests/packages/upstream.sh
	queue once tap steps selftests/tools/steps_test.sh
	queue once tap fetch selftests/tools/fetch_test.sh
	queue tap containers selftests/containers/containers.sh
	queue tap containers-7.2 selftests/containers/containers.sh -k 7.2 \
		users cdi_file own_network neighbours
	queue tap interop-trixie-sid selftests/interop/interop.sh -q -s "trixie sid" 6.1
	counting=''
	get_kernels debug
	build_module debug || finish
	check_kernel debug
	siw debug
	queue tap rdmasim-dmabuf-debug sim_dmabufs debug
	queue tap rdmasim-faults-debug sim_tests debug '' failnth
	queue fuzz debug 60
	get_kernels debug-kcsan
	build_module debug-kcsan || finish
	check_kernel debug-kcsan
}

[ -z "$minutes" ] || stop_after $((minutes * 60))
read -ra programs_32 < <(names_in selftests/tests.mk RPOST_TESTS_32)
if [ -n "$all" ]; then
	check_all
elif [ ${#subjects[@]}${#kernels[@]} = 00 ]; then
	check_gate
else
	once step packages world "$vm_dir/deps.sh" build guests || finish
	once step kselftest world "$vm_dir/fetch.sh" kselftest || finish
	if [ ${#subjects[@]} != 0 ]; then
		check_subjects
	else
		check_kernels
	fi
fi
finish
