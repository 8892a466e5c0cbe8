# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# libfabric, Open MPI, QEMU.

# fi_both ARGS...: run both ends, which verify the received data (-c)
fi_both() {
	serve "$port" fi_pingpong -B "$port" -I 20 -S 4096 -c "$@"
	run fi_pingpong -P "$port" -I 20 -S 4096 -c "$@" "$addr"
	ends
	says client '^4k +20 '
	says server '^4k +20 '
	says_not client 'error|failed'
}

case_ fi_info fi_info "provider verbs, endpoints msg and rdm" smoke
fi_info() {
	run fi_info -p verbs
	says client 'provider: verbs'
	says client 'FI_EP_MSG'
}

case_ fi_pingpong_msg fi_pingpong "verbs, FI_EP_MSG, -c" smoke
fi_pingpong_msg() { fi_both -p verbs -e msg; }
case_ fi_pingpong_rdm fi_pingpong "verbs;ofi_rxm, FI_EP_RDM, -c"
fi_pingpong_rdm() {
	# With the default it requests larger completion queues than rxe has.
	export FI_UNIVERSE_SIZE=16
	# When rxm learns of the disconnection before it has polled the last
	# message, its verbs provider destroys the queue pair first
	# (vrb_ep_close() in libfabric 1.17), and the message is lost on devices
	# that drop the completions of a destroyed queue pair.  So it reads
	# connection events once a second (in us), and not every 10 ms.
	export FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000000
	# ofi_rxm registers more than 8 MiB in each process.
	ulimit -l 65536
	fi_both -p 'verbs;ofi_rxm' -e rdm
}
case_ fi_pingpong_dgram fi_pingpong "verbs, FI_EP_DGRAM"
fi_pingpong_dgram() { fi_both -p verbs -e dgram; }

# hpcc always runs all of its tests, and says that the last one transfers 4 GB,
# which takes minutes over an emulated device.  So the case stops it after the
# first test that verifies its result, and tests neither its exit status nor
# MPI_Finalize().
case_ mpi_hpcc openmpi/hpcc \
	"mtl ofi, verbs;ofi_rxm: random access, verified, then stopped"
mpi_hpcc() {
	local before
	export FI_UNIVERSE_SIZE=16
	cd "$tmp" || exit
	before=$(packets)
	hpcc_input >hpccinf.txt
	: >hpccoutf.txt
	chmod 666 hpccoutf.txt
	# ofi_rxm registers more than 8 MiB in each process.
	ulimit -l 65536
	start mpirun mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 \
		--mca plm_rsh_agent false --mca pml cm --mca mtl ofi --mca btl self \
		--mca mtl_ofi_provider_include 'verbs;ofi_rxm' hpcc
	written hpccoutf.txt 'Found 0 errors in .* \(passed\)' mpirun
	sends 1000 "$before" mpirun
	stop mpirun
}

hpcc_input() {
	cat <<-END
		HPLinpack benchmark input file
		test
		HPL.out      output file name (if any)
		8            device out (6=stdout,7=stderr,file)
		1            # of problems sizes (N)
		64           Ns
		1            # of NBs
		16           NBs
		0            PMAP process mapping (0=Row-,1=Column-major)
		1            # of process grids (P x Q)
		1            Ps
		2            Qs
		16.0         threshold
		1            # of panel fact
		2            PFACTs (0=left, 1=Crout, 2=Right)
		1            # of recursive stopping criterium
		4            NBMINs (>= 1)
		1            # of panels in recursion
		2            NDIVs
		1            # of recursive panel fact.
		1            RFACTs (0=left, 1=Crout, 2=Right)
		1            # of broadcast
		1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
		1            # of lookahead depth
		1            DEPTHs (>=0)
		2            SWAP (0=bin-exch,1=long,2=mix)
		64           swapping threshold
		0            L1 in (0=transposed,1=no-transposed) form
		0            U  in (0=transposed,1=no-transposed) form
		1            Equilibration (0=no,1=yes)
		8            memory alignment in double (> 0)
	END
}

# qmp NAME DONE COMMAND [AGAIN]: send COMMAND to the monitor of QEMU NAME, then
# repeat AGAIN until an answer matches DONE
qmp() {
	local name="$1" done="$2" command="$3" again="${4-}" n=0
	: >"$tmp/qmp.$name"
	# shellcheck disable=SC2094
	{
		echo '{"execute":"qmp_capabilities"}'
		echo "$command"
		while [ $n -lt "$limit" ] && ! grep -q "$done" "$tmp/qmp.$name"; do
			sleep 0.5
			[ -z "$again" ] || echo "$again"
			n=$((n + 1))
		done
	} | socat - "UNIX-CONNECT:$tmp/.$name" >"$tmp/qmp.$name" || true
	says "qmp.$name" "$done"
}

# One QEMU migrates its memory to the other; no guest runs in it.  QEMU does not
# send zero pages by RDMA, so the memory has random bytes, four of the chunks of
# 1 MiB that QEMU registers.
case_ qemu_migrate qemu-system-x86_64 "migration by rdma:, 4 MiB compared"
qemu_migrate() {
	local query='{"execute":"query-migrate"}' done='"status": "completed"'
	local at=4194304 size=4194304
	local vm="qemu-system-x86_64 -M q35 -accel tcg -m 16 -nodefaults -display none -S"
	head -c $size /dev/urandom >"$tmp/.random"
	# shellcheck disable=SC2086
	serve "$port" $vm -qmp "unix:$tmp/.server,server=on,wait=off" \
		-incoming "rdma:$addr:$port"
	# shellcheck disable=SC2086
	start source $vm -qmp "unix:$tmp/.source,server=on,wait=off" \
		-device "loader,file=$tmp/.random,addr=$at,force-raw=on"
	until [ -S "$tmp/.source" ]; do
		running source || fail "the source has ended early"
		sleep 0.1
	done
	qmp source "$done" "{\"execute\":\"migrate\",
		\"arguments\":{\"uri\":\"rdma:$addr:$port\"}}" "$query"
	qmp server "$done" "$query" "$query"
	qmp server '"id": "saved"' "{\"execute\":\"pmemsave\",\"id\":\"saved\",
		\"arguments\":{\"val\":$at,\"size\":$size,\"filename\":\"$tmp/.saved\"}}"
	cmp "$tmp/.random" "$tmp/.saved" >"$tmp/cmp" 2>&1 ||
		fail "the memory is not what it was"
	stop source
	stop
}
