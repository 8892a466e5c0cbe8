# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# UCX: its transports (UCT), its protocols (UCP), and programs over them.

# That of sid (1.23~rc1) is built without verbs.
only_in bookworm trixie

# ucx_over [TRANSPORTS]: how UCX runs over the device. It registers up to 40 MiB
# for each endpoint's buffers.  The third GID is an IPv6 address: UCX 1.13 drops
# each datagram that came by IPv4, whose header it takes for a GRH, unless the
# device is of mlx5.
ucx_over() {
	ulimit -l $((256 << 10))
	export UCX_IB_GID_INDEX=2
	[ -z "${1-}" ] || export UCX_TLS=$1 UCX_NET_DEVICES=$dev:1
}

case_ ucx_info ucx_info "-d, transports rc_verbs and ud_verbs" smoke
ucx_info() {
	run ucx_info -d
	says client 'Transport: rc_verbs'
	says client 'Transport: ud_verbs'
	says client "Device: $dev:1"
}

# ucx_both TEST...: run these tests of ucx_perftest, one line of arguments each.
# That of Debian 13 has MPI, and without -P 0 expects to be started by it if it has no
# terminal.  That of Debian 12 has no -P.
ucx_both() {
	local test no_mpi=
	[ "$release" = bookworm ] || no_mpi='-P 0'
	ucx_over
	for test; do
		# shellcheck disable=SC2086
		serve "$port" ucx_perftest $no_mpi -p "$port" -t $test
		# shellcheck disable=SC2086
		run ucx_perftest $no_mpi "$addr" -p "$port" -t $test -n 200 -w 10 -f
		ends
		says client '^ +200 '
		says_not client 'ERROR|WARN'
	done
}

# uct TRANSPORT TEST...: the same of one transport on the device
uct() {
	local transport=$1 test
	shift
	for test; do
		ucx_both "$test -d $dev:1 -x $transport"
	done
}

case_ uct_rc_am ucx_perftest "UCT, rc_verbs: am, short, bcopy, zcopy" smoke
uct_rc_am() {
	uct rc_verbs 'am_lat -D short -s 8' 'am_lat -D bcopy -s 2000' \
		'am_bw -D zcopy -s 2000'
}
case_ uct_rc_put ucx_perftest "UCT, rc_verbs: put, short, bcopy, zcopy"
uct_rc_put() {
	uct rc_verbs 'put_lat -D short -s 8' 'put_lat -D bcopy -s 2000' \
		'put_bw -D zcopy -s 65536'
}
case_ uct_rc_get ucx_perftest "UCT, rc_verbs: get, bcopy, zcopy"
uct_rc_get() {
	uct rc_verbs 'get -D bcopy -s 2000' 'get -D zcopy -s 65536'
}
case_ uct_rc_atomics ucx_perftest "UCT, rc_verbs: add, fadd, cswap"
uct_rc_atomics() {
	uct rc_verbs 'add_lat -s 8' 'fadd -s 8' 'cswap -s 8'
}
case_ uct_ud_am ucx_perftest "UCT, ud_verbs: am, short, bcopy, zcopy"
uct_ud_am() {
	uct ud_verbs 'am_lat -D short -s 8' 'am_lat -D bcopy -s 2000' \
		'am_bw -D zcopy -s 2000'
}

# ucp TRANSPORTS TEST...: tests of the protocols over these transports
ucp() {
	ucx_over "$1"
	shift
	ucx_both "$@"
}

# ucp_rc_and TEST...
ucp_rc_and() {
	ucp rc_verbs,ud_verbs 'tag_lat -s 8' 'tag_bw -s 65536' \
		'tag_sync_lat -s 1000' 'ucp_am_bw -s 65536' 'stream_bw -s 1000' \
		'ucp_put_lat -s 1000' 'ucp_get -s 65536' "$@"
}

only_in bookworm
case_ ucp_rc ucx_perftest "UCP, rc: tag, am, stream, put, get, atomics"
ucp_rc() { ucp_rc_and 'ucp_fadd -s 8' 'ucp_cswap -s 8'; }
# In UCX 1.18 the end of atomics fails: rc_verbs cannot flush at the other side.
only_in trixie
case_ ucp_rc_data ucx_perftest "UCP, rc: tag, am, stream, put, get"
ucp_rc_data() { ucp_rc_and; }
only_in bookworm trixie
case_ ucp_ud ucx_perftest "UCP, ud: tag, am"
ucp_ud() { ucp ud_verbs 'tag_lat -s 8' 'tag_bw -s 65536' 'ucp_am_lat -s 1000'; }

# io_demo connects by rdmacm, and with -q compares data. Its server does not end.
io_demo_over() {
	local sizes=64:65536
	ucx_over rc_verbs,ud_verbs,self
	export UCX_SOCKADDR_TLS_PRIORITY=rdmacm
	serve "$port" io_demo -p "$port" -q -d $sizes "$@"
	run io_demo "$addr" -p "$port" -q -d $sizes -o read,write -i 200 -c 1 "$@"
	says client 'Client exit with status .OK'
	says_not client 'ERROR|error'
	stop
}
case_ io_demo_tag io_demo "UCP by rdmacm, tags, data compared"
io_demo_tag() { io_demo_over; }
case_ io_demo_am io_demo "UCP by rdmacm, active messages, data compared"
io_demo_am() { io_demo_over -A; }

case_ mpi_ucx_hpcc openmpi/hpcc \
	"pml ucx, rc_verbs: random access, verified, then stopped"
mpi_ucx_hpcc() {
	local before
	ucx_over rc_verbs,ud_verbs,self
	cd "$tmp" || exit
	before=$(packets)
	hpcc_input >hpccinf.txt
	: >hpccoutf.txt
	chmod 666 hpccoutf.txt
	start mpirun mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 \
		--mca plm_rsh_agent false --mca pml ucx --mca btl self hpcc
	written hpccoutf.txt 'Found 0 errors in .* \(passed\)' mpirun
	sends 1000 "$before" mpirun
	stop mpirun
}
