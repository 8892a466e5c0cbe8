# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# MPICH over UCX.

only_in bookworm trixie

# mpich PROGRAM ARGS...: run it on two processes that take each other for another host's
mpich() {
	local before
	ucx_over rc_verbs,ud_verbs,self
	export MPIR_CVAR_NOLOCAL=1
	cd "$tmp" || exit
	before=$(packets)
	run mpirun.mpich -launcher fork -n 2 "$@"
	has_sent 200 "$before"
}

case_ mpich_netpipe mpich/NPmpich2 "ch4:ucx, up to 64 KiB, integrity check"
mpich_netpipe() {
	mpich NPmpich2 -i -u 65536 -n 5
	says client 'Integrity check passed'
	says_not client 'Integrity check failed'
}
case_ mpich_lu mpich/xdlu "ch4:ucx, ScaLAPACK's LU factorization, verified"
mpich_lu() {
	lu_input >"$tmp/LU.dat"
	mpich /usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu
	says client ' 4 tests completed and passed residual checks'
	says client ' 0 tests completed and failed residual checks'
}

lu_input() {
	cat <<-END
		'ScaLAPACK LU factorization input file'
		'two processes'
		'LU.out'        output file name (if any)
		6               device out
		2               number of problems sizes
		40 64           values of M
		40 64           values of N
		2               number of NB's
		8 16            values of NB
		1               number of NRHS's
		3               values of NRHS
		1               number of NBRHS's
		5               values of NBRHS
		1               number of process grids
		1               values of P
		2               values of Q
		1.0             threshold
		T               test condition estimation and iterative refinement
	END
}
