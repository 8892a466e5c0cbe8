#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: doctor.sh
#
# Breaks something, and tests that rdma-post doctor names it, and nothing else; mends it,
# and tests that doctor finds no problem. Prints TAP. Runs in a guest with rxe0 at
# 10.0.0.1 and rdmasim.ko, as root. In the working directory are bin/rdma-post with lib/,
# tap.sh, jq, setcap, and the module as another kernel's (see check.sh).

# Functions are called by name; scripts expand their own variables.
# shellcheck disable=SC2016,SC2317

PATH=$PWD/bin:$PWD:$PATH
ko=/vm/modules/rdma_post.ko
modules=/lib/modules/$(uname -r)/extra
subject=doctor
# shellcheck source=../lib/tap.sh
. ./tap.sh

evidence() { cat report.json report.txt; }

# doctor ARGUMENT...: make both reports, by $as; return their exit status, or 9 if they
# differ
as=''
doctor() {
	# shellcheck disable=SC2086
	$as rdma-post doctor -j "$@" >report.json 2>&1
	status=$?
	# shellcheck disable=SC2086
	$as rdma-post doctor "$@" >report.txt 2>&1
	[ $? = $status ] || return 9
	return $status
}

# names NAME CHECK TEXT [ARGUMENT...]: test that the only problem is CHECK, found once, that
# its object, reason or advice has TEXT, and that the text for people has both
names() {
	name=$1 check=$2 text=$3
	shift 3
	doctor "$@"
	[ $? = 1 ] && has "$check" problem "$text" && jq -e --arg check "$check" '
		.problems == 1 and ([.findings[] | select(.status == "problem")] |
		map(.check) == [$check] and all(.[]; .try != null))' report.json >jq.log 2>&1 &&
		grep -q "^PROBLEM .*\[$check\]\$" report.txt && grep -qF -e "$text" report.txt
	result "$name" $?
}

# has CHECK STATUS TEXT: the report has such a finding
has() {
	jq -e --arg check "$1" --arg status "$2" --arg text "$3" 'any(.findings[];
		.check == $check and .status == $status and ([.object, .what, .why, .try] |
			map(. // "") | any(contains($text))))' report.json >jq.log 2>&1
}

# notes NAME CHECK TEXT [ARGUMENT...]: test that CHECK is a note with TEXT, and no problem
notes() {
	name=$1 check=$2 text=$3
	shift 3
	doctor "$@" && has "$check" note "$text" && grep -q "^note .*\[$check\]\$" report.txt
	result "$name" $?
}

# reports NAME CHECK STATUS TEXT: test that there is such a finding, among others
reports() {
	doctor
	test_ "$1" has "$2" "$3" "$4"
}

# healthy NAME [ARGUMENT...]: test that there is no problem, and nothing unknown
healthy() {
	name=$1
	shift
	: >report.txt
	# shellcheck disable=SC2086
	$as rdma-post doctor -j "$@" >report.json 2>&1 && jq -e '.problems == 0 and
		all(.findings[]; .status == "ok" or .status == "note")' \
		report.json >jq.log 2>&1
	result "$name" $?
}

# skips NAME CHECK...: test that the last report left these checks out, and no others
skips() {
	name=$1
	shift
	jq -e '[.findings[] | select(.status == "skipped") | .check] == $ARGS.positional' \
		--args "$@" <report.json >jq.log 2>&1
	result "$name" $?
}

load() { insmod "$ko" "$@"; }

# refused FILE.ko [PARAMETER]: try to load a module, which must not succeed
refused() {
	if insmod "$@" 2>/dev/null; then
		: >report.json
		echo "$* was loaded" >report.txt
		result "refused_$1" 1
		rmmod rdma_post
	fi
}

device() { rdma link add rxe0 type rxe netdev dummy0; }

# compressed_module STATUS: a user's PATH does not lead to modinfo, which alone looks into a
# compressed module; test the status of another release, and what is said without modinfo
compressed_module() {
	gzip -c vermagic.ko >"$modules/rdma_post.ko.gz"
	sed -i 's/rdma_post.ko:/rdma_post.ko.gz:/' "$modules/../modules.dep"
	rm /bin/modinfo
	ln -s ../bin/busybox /sbin/modinfo
	as="env PATH=$PWD/bin:$PWD"
	reports compressed module.vermagic "$1" 'for another kernel: 5'
	as=''
	rm /sbin/modinfo
	echo Y >/tmp/enforced
	mount --bind /tmp/enforced /sys/module/module/parameters/sig_enforce
	reports signature_unknown module.signature unknown 'install modinfo'
	umount /sys/module/module/parameters/sig_enforce
	ln -s busybox /bin/modinfo
	rm "$modules/rdma_post.ko.gz"
	sed -i 's/rdma_post.ko.gz:/rdma_post.ko:/' "$modules/../modules.dep"
}

module_hidden() {
	: >/tmp/empty
	mount --bind /tmp/empty /proc/misc
	mount -t tmpfs none /sys
	reports module_hidden module.loaded unknown 'nothing tells'
	umount /sys /proc/misc
}

module_tests() {
	rmmod rdma_post
	touch /run/.containerenv
	names not_loaded_in_container module.loaded 'on the host: modprobe'
	rm /run/.containerenv
	module_hidden
	names not_installed module.file "not installed for kernel $(uname -r)" -t 10.0.0.1
	skips not_installed_skips node device port loopback peer
	mkdir -p /lib/modules/5.0.0-other/extra "$modules"
	cp "$ko" /lib/modules/5.0.0-other/extra/
	echo extra/rdma_post.ko: >/lib/modules/5.0.0-other/modules.dep
	names installed_for_another_kernel module.file 'for kernel 5.0.0-other'
	rm -r /lib/modules/5.0.0-other
	cp "$ko" "$modules/"
	names not_in_modules_dep module.file 'depmod -a'
	echo extra/rdma_post.ko: >>"$modules/../modules.dep"
	names not_loaded module.loaded 'modprobe rdma_post'
	as=vm-user
	echo 1 >/proc/sys/kernel/dmesg_restrict
	names not_loaded_without_the_log module.loaded 'run doctor as root'
	echo 0 >/proc/sys/kernel/dmesg_restrict
	as=''
	# With CONFIG_MODVERSIONS the kernel does not compare releases.
	sed 's/ modversions / xxxversions /' vermagic.ko >"$modules/rdma_post.ko"
	names file_for_another_kernel module.vermagic 'for another kernel: 5'
	cp vermagic.ko "$modules/rdma_post.ko"
	versions=problem
	grep -q ' modversions ' vermagic.ko && versions=note
	reports file_of_another_release module.vermagic $versions 'for another kernel: 5'
	compressed_module $versions
	cp "$ko" "$modules/"
	refused vermagic.ko
	names other_flags module.vermagic 'version magic'
	if grep -q 'mod_unload modversions' "$ko"; then
		refused symbols.ko
		names other_symbols module.symbols 'disagrees about version of symbol ib_register_client'
	else
		skip other_symbols 'this kernel has no CONFIG_MODVERSIONS'
	fi
	refused "$ko" devices=hfi1
	names wrong_parameter module.parameter 'hfi1'
	rdma link del rxe0
	rmmod rdma_ucm rdma_cm
	refused "$ko"
	names missing_module module.unknown_symbol 'modprobe'
	modprobe -a rdma_cm rdma_ucm
	device
	load
	healthy loaded
}

# Last, since the kernel goes on to want signatures.
signature_test() {
	rmmod rdma_post
	echo 1 >/sys/module/module/parameters/sig_enforce
	refused "$ko"
	names not_signed module.signature 'mokutil'
	mkdir -p /tmp/firmware
	mount -t tmpfs none /sys/firmware && mkdir -p /sys/firmware/efi/efivars &&
		printf '\6\0\0\0\1' >/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
	names secure_boot module.signature 'Secure Boot is on'
	umount /sys/firmware
	mount -t securityfs none /sys/kernel/security &&
		echo integrity >/sys/kernel/security/lockdown
	names locked_down module.signature 'the kernel is locked down'
	umount /sys/kernel/security
	printf '~Module signature appended~\n' >>"$modules/rdma_post.ko"
	# This one has a signature: what the log says of unsigned modules is about others.
	dmesg -c >/dev/null
	refused "$ko"
	names lines_of_others module.loaded 'modprobe'
	echo 'Loading of module with unavailable key is rejected' >/dev/kmsg
	names unknown_key module.signature 'a module, perhaps this one: ['
	rm "$modules/rdma_post.ko"
	names rejected module.signature 'is rejected'
}

# with_node COMMAND...: with /dev/rdma_post out of the way
with_node() {
	mv /dev/rdma_post /dev/hidden
	"$@"
	rm -f /dev/rdma_post
	mv /dev/hidden /dev/rdma_post
}

node_stale() {
	mknod -m 666 /dev/rdma_post c 10 7
	names node_stale node.stale 'mknod'
}

node_no_device() {
	touch /dev/rdma_post
	names node_is_a_file node.stale 'mknod'
}

node_in_container() {
	touch /run/.containerenv
	names node_not_in_container node.missing '--device /dev/rdma_post'
	rm /run/.containerenv
}

node_nodev() {
	mkdir -p /tmp/nodev
	mount -t tmpfs -o nodev none /tmp/nodev
	mknod -m 666 /tmp/nodev/rdma_post c 10 "$(awk '/rdma_post/ { print $1 }' /proc/misc)"
	touch /dev/rdma_post
	mount --bind /tmp/nodev/rdma_post /dev/rdma_post
	names node_nodev node.mode 'nodev'
	umount /dev/rdma_post /tmp/nodev
}

# The device cgroup of version 1 forbids what that of containers does.
node_cgroup() {
	mkdir -p /tmp/cgroup
	mount -t cgroup -o devices none /tmp/cgroup && mkdir /tmp/cgroup/guarded &&
		echo "c 10:* rwm" >/tmp/cgroup/guarded/devices.deny
	as=/tmp/guarded
	printf '#!/bin/sh\necho $$ >/tmp/cgroup/guarded/cgroup.procs\nexec "$@"\n' >$as
	chmod +x $as
	names node_cgroup node.cgroup 'DeviceAllow'
	as=''
	rmdir /tmp/cgroup/guarded
	umount /tmp/cgroup
}

node_tests() {
	with_node names node_missing node.missing 'mknod' -t 10.0.0.1
	skips node_missing_skips device port loopback peer
	with_node node_in_container
	with_node node_stale
	with_node node_no_device
	with_node node_nodev
	as=vm-user
	chmod 600 /dev/rdma_post
	names node_mode node.mode '90-rdma-post.rules'
	chmod 660 /dev/rdma_post
	names node_group node.mode 'GROUP="rdma"'
	! grep -q 'usermod -aG root' report.txt
	result node_group_root $?
	chgrp 65534 /dev/rdma_post
	as='setpriv --reuid=nobody --regid=12345 --clear-groups'
	names node_group_other node.mode 'usermod -aG nogroup'
	chgrp 0 /dev/rdma_post
	chmod 666 /dev/rdma_post
	as=''
	node_cgroup
	bytes=$(cat /sys/module/rdma_post/parameters/max_user_bytes)
	echo 1 >/sys/module/rdma_post/parameters/max_user_bytes
	as=vm-user
	names node_memory node.memory 'max_user_bytes'
	as=''
	echo "$bytes" >/sys/module/rdma_post/parameters/max_user_bytes
	healthy node
}

device_tests() {
	rdma link del rxe0
	names no_device device.none 'rdma link add rxe0' -t 10.0.0.1
	skips no_device_skips port loopback peer
	rdma system set netns exclusive
	device
	as='unshare -n'
	names exclusive device.none 'rdma dev set DEVICE netns'
	as=''
	rdma link del rxe0
	rdma system set netns shared
	device
	as='unshare -n'
	names other_namespace port.namespace 'network namespace'
	as=''
	rdma link add sim0 type sim netdev dummy0
	notes not_found_safe device.refused \
		'modprobe -r rdma_post && modprobe rdma_post devices=rdmasim'
	rdma-post devices -j >report.json && jq -e '.devices | map({ (.name): . }) | add |
		.rxe0.offered and .rxe0.driver == "rxe" and .rxe0.reason == null and
		.rxe0.ports[0].netdev == "dummy0" and .rxe0.ports[0].gids == 3 and
		(.sim0.offered | not) and (.sim0.reason | contains("rdmasim"))' report.json \
		>jq.log 2>&1
	result devices_json $?
	rdma-post devices >report.txt && grep -qE '^rxe0 +rxe +1 +active +dummy0 +3  yes$' \
		report.txt && grep -qE '^sim0 .* no: its driver \(rdmasim\)' report.txt
	result devices_text $?
	rdma link del sim0
	rmmod rdma_post
	load devices=-rxe
	names withdrawn device.refused 'without -rxe'
	! rdma-post devices >report.txt
	result devices_none_offered $?
	# Without the log, the parameter tells.
	as=vm-user
	echo 1 >/proc/sys/kernel/dmesg_restrict
	names withdrawn_without_the_log device.refused 'without -rxe'
	echo 0 >/proc/sys/kernel/dmesg_restrict
	as=''
	rmmod rdma_post
	load
	healthy device
}

addresses() {
	ip addr replace 10.0.0.1/24 dev dummy0
	ip addr replace fd00::1/64 dev dummy0 nodad
}

port_tests() {
	ip link set dummy0 down
	names port_down port.state 'ip link set dummy0 up' -t 10.0.0.1
	skips port_down_skips loopback peer
	ip link set dummy0 up
	addresses
	ip link add v0 type veth peer name v1
	ip link set v0 up
	rdma link add rxe1 type rxe netdev v0
	notes no_carrier port.state 'no carrier'
	rdma link del rxe1
	ip link del v0
	ip addr flush dev dummy0
	names no_address port.address 'ip addr add'
	addresses
	ip link set dummy0 mtu 700
	notes small_mtu port.mtu 'MTU of 700'
	# IPv6 needs 1280.
	ip link set dummy0 mtu 4200
	addresses
	healthy port
}

limit_tests() {
	printf '#!/bin/sh\nulimit -l "$kib"\nexec vm-user "$@"\n' >/tmp/limited
	chmod +x /tmp/limited
	# Capabilities of another user namespace do not count.
	printf '#!/bin/sh\nulimit -l 4\nexec unshare -U -r "$@"\n' >/tmp/other_user
	chmod +x /tmp/other_user
	as=/tmp/other_user
	names memlock_in_user_namespace limits.memlock 'ulimit -l'
	as=/tmp/limited
	export kib=0
	names memlock limits.memlock 'ulimit -l' -t 10.0.0.1
	# A connection to another host takes no memory.
	skips memlock_skips loopback
	kib=8 && notes memlock_of_two_pages limits.memlock '8 KiB'
	skips memlock_of_two_pages_skips
	kib=64 && notes memlock_of_containers limits.memlock '64 KiB'
	kib=8192 && notes memlock_of_debian limits.memlock '8192 KiB'
	kib=unlimited && healthy memlock_unlimited
	group=/sys/fs/cgroup/outer
	echo '+rdma +memory' >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group/inner
	as=/tmp/grouped
	printf '#!/bin/sh\necho $$ >%s/inner/cgroup.procs\nexec "$@"\n' $group >$as
	chmod +x $as
	# In a namespace whose root is the group with the limit.
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs\nexec unshare -C -m /tmp/mounted "$@"\n' \
		$group >/tmp/namespaced
	printf '#!/bin/sh\numount -l %s && mount -t cgroup2 none %s && exec "$@"\n' \
		/sys/fs/cgroup /sys/fs/cgroup >/tmp/mounted
	chmod +x /tmp/mounted /tmp/namespaced
	echo 'rxe0 hca_object=2' >$group/rdma.max
	names rdma_cgroup limits.rdma_cgroup "rdma.max in $group" -t 10.0.0.1
	skips rdma_cgroup_skips loopback peer
	echo 'rxe0 hca_object=1000' >$group/rdma.max
	notes rdma_cgroup_ample limits.rdma_cgroup 'hca_object=1000'
	echo 'rxe0 hca_object=max' >$group/rdma.max
	echo 12M >$group/memory.max
	names memory_cgroup limits.memory_cgroup "memory.max in $group"
	as=/tmp/namespaced
	reports above_the_namespace limits.cgroup_namespace unknown 'cannot be seen'
	grep -q '^PROBLEM *cgroup /: memory is limited to 12288 KiB' report.txt
	result cgroup_namespace $?
	as=/tmp/grouped
	echo 64M >$group/memory.max
	echo 62914560 >/tmp/current
	mount --bind /tmp/current $group/memory.current
	printf 'anon 4194304\nactive_file 41943040\n' >/tmp/stat
	mount --bind /tmp/stat $group/memory.stat
	notes memory_cgroup_of_page_cache limits.memory_cgroup '45056 KiB are left'
	umount $group/memory.current $group/memory.stat
	echo max >$group/memory.max
	healthy limits
	as=''
	rmdir $group/inner $group
}

loopback_tests() {
	objects=$(cat /sys/module/rdma_post/parameters/max_objects)
	echo 3 >/sys/module/rdma_post/parameters/max_objects
	names loopback loopback 'making queues failed' -t 10.0.0.1
	skips loopback_skips peer
	echo "$objects" >/sys/module/rdma_post/parameters/max_objects
	healthy loopback_works
}

# A set-user-ID program of another user, and one with capabilities.
program_tests() {
	as=vm-user
	cp /usr/bin/rping /tmp/privileged
	chmod 4755 /tmp/privileged
	names set_user_id program.library 'set-user-ID' -p /tmp/privileged
	chmod 2755 /tmp/privileged
	names set_group_id program.library 'set-group-ID' -p /tmp/privileged
	chmod 755 /tmp/privileged
	healthy unprivileged -p /tmp/privileged
	setcap cap_net_raw+ep /tmp/privileged
	names file_capabilities program.library 'file capabilities' -p /tmp/privileged
	as=''
	healthy file_capabilities_of_root -p /tmp/privileged
	rm /tmp/privileged
}

peer_listens() {
	rping -s -a 10.0.0.1 -p 7174 >rping.log 2>&1 &
	while_runs $! listens 7174
	healthy peer_listens -t 10.0.0.1:7174
	kill $! 2>/dev/null
	wait $!
}

# Freeze the child of $doctor. It leaves the cgroup if it was about to end.
freezes() {
	child=$(cat "/proc/$doctor/task/$doctor/children") && child=${child%% *} && [ -n "$child" ] &&
		echo "$child" >/tmp/freezer/cold/cgroup.procs || return
	until grep -q FROZEN /tmp/freezer/cold/freezer.state; do :; done
	grep -qx "$child" /tmp/freezer/cold/cgroup.procs
}

# The freezer of version 1 keeps a process even when it is killed.
peer_stuck() {
	mkdir -p /tmp/freezer
	mount -t cgroup -o freezer none /tmp/freezer && mkdir /tmp/freezer/cold &&
		echo FROZEN >/tmp/freezer/cold/freezer.state
	: >report.json
	rdma-post doctor -t 10.0.0.99 >report.txt 2>&1 &
	doctor=$!
	while_runs $doctor freezes 2>/dev/null
	wait $doctor
	[ $? = 1 ] && grep -qx "$child" /tmp/freezer/cold/cgroup.procs &&
		grep -q "process $child does not end in the kernel" report.txt &&
		grep -q "/proc/$child/stack" report.txt
	result peer_stuck $?
	echo THAWED >/tmp/freezer/cold/freezer.state
	until_true 60 rmdir /tmp/freezer/cold 2>/dev/null
	umount /tmp/freezer
}

# Who waits at a terminal sees for what; in a pipe nothing is printed.
peer_progress() {
	! grep -q "$(printf '\033\\|\r')" report.txt
	result quiet_in_a_pipe $?
	TERM=xterm script -qec 'rdma-post doctor -t 10.0.0.99' /dev/null </dev/null >report.txt 2>&1
	grep -q "$(printf '\r\033\\[K10.0.0.99: [a-z ]*, [1-4] s of at most 5')" report.txt
	result progress_on_a_terminal $?
}

peer_tests() {
	healthy peer_answers -t 10.0.0.1
	healthy peer_answers_ipv6 -t '[fd00::1]'
	names peer_port peer.listener 'no program listens' -t 10.0.0.1:7174
	names peer_port_ipv6 peer.listener 'no program listens' -t '[fd00::1]:7174'
	peer_listens
	names peer_silent peer.connect 'UDP port 4791' -t 10.0.0.99
	peer_progress
	names peer_no_route peer.route 'no route' -t 192.0.2.1
	names peer_unknown peer.name 'IP address' -t no-such-host
	for peer in 10.0.0.1:nope 10.0.0.1: 10.0.0.1:65536 :7174 '[fd00::1' '[fd00::1]7174'; do
		doctor -t "$peer"
		[ $? = 2 ] && grep -q 'not HOST, HOST:PORT' report.txt
		result "peer_usage_$peer" $?
	done
	ip neigh replace 10.0.0.77 dev dummy0 nud failed
	names peer_address peer.address 'resolv' -t 10.0.0.77
	ip link add dummy1 type dummy
	ip link set dummy1 up
	ip addr add 10.9.0.1/24 dev dummy1
	names peer_other_interface peer.route 'over dummy1' -t 10.9.0.2
	ip link del dummy1
	peer_stuck
	healthy peer
}

echo "TAP version 13"
healthy at_first
module_tests
node_tests
device_tests
port_tests
limit_tests
loopback_tests
program_tests
peer_tests
signature_test
end_tap
