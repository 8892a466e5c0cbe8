#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: selftests/doctor/peer.sh [-k KERNEL]
#
# Two hosts: tests what rdma-post doctor --to says on B of A, which answers, has a program
# that listens, loses its RDMA device, and leaves the network. Prints TAP. The module and
# build/bin/rdma-post must have been built.
#
# In a guest: peer.sh a, or peer.sh b.

# shellcheck disable=SC2317

set -u

# A follows B step by step.
host_a() {
	rping -s -a 10.0.1.1 -p 7174 &
	while_runs $! listens 7174
	vm-sync listens
	vm-sync heard
	wait $!
	rdma link del rxe0
	vm-sync deaf
	vm-sync silence
	ip link set eth0 down
	vm-sync gone
	vm-sync end
}

# says NAME CHECK STATUS TEXT PEER: test what doctor finds out about the peer last
says() {
	./rdma-post doctor -j -t "$5" >report.json 2>&1
	./jq -e --arg check "$2" --arg status "$3" --arg text "$4" '
		.findings[-1] | .check == $check and .status == $status and
			(.what | contains($text))' report.json >/dev/null 2>&1
	result "$1" $?
}

host_b() {
	evidence() { cat report.json; }
	echo "TAP version 13"
	vm-sync listens
	says answers peer.connect ok 'its RDMA answers' 10.0.1.1
	says answers_ipv6 peer.connect ok 'its RDMA answers' fd01::1
	says no_listener peer.listener problem 'no program listens' 10.0.1.1:7175
	says listens peer.connect ok 'has accepted' 10.0.1.1:7174
	vm-sync heard
	vm-sync deaf
	says without_device peer.connect problem 'does not answer by RDMA' 10.0.1.1
	vm-sync silence
	vm-sync gone
	ip neigh flush dev eth0
	says off_the_network peer.address problem 'cannot be resolved' 10.0.1.1
	vm-sync end
	end_tap
}

case ${1-} in
a | b)
	subject=peer
	# shellcheck source=../lib/tap.sh
	. ./tap.sh
	"host_$1"
	exit
	;;
esac

. "$(dirname "$0")/../vm/lib.sh"
kernel=6.1
while getopts hk: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	h) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done

set -o pipefail
"$vm_dir/pair.sh" -k "$kernel" -t 300 -o "$build_dir/vm/doctor-peer.$kernel" \
	-f "$build_dir/bin/rdma-post" -f "$(command -v jq)" \
	-f "$top_dir/selftests/lib/tap.sh" -f "$top_dir/selftests/doctor/peer.sh:/root/peer" \
	-a 'sh ./peer a' -b 'sh ./peer b' | sed -u 's/^B: //'
