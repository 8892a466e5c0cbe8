# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# adios2's SST, whose data go over libfabric.

only_in trixie sid

case_ adios2_sst adios2 "SST, verbs;ofi_rxm: four steps of 1 MiB, data compared"
adios2_sst() {
	local before
	export FABRIC_IFACE="$dev" FI_UNIVERSE_SIZE=16
	# ofi_rxm registers more than 8 MiB in each process.
	ulimit -l 65536
	cd "$tmp" || exit
	before=$(packets)
	start server python3 -B "$here/adios2_sst.py" write stream
	run python3 -B "$here/adios2_sst.py" read stream
	ends
	says client '^4 steps compared$'
	has_sent 1000 "$before"
}
