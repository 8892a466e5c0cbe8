# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# Ceph's messenger.

only_in trixie

# ceph_msgr_sized SIZE: two clients with four messages in flight, 200 messages each,
# whose checksums the receiver compares.  By default each process registers 4 GiB.
ceph_msgr_sized() {
	local size=$1 options before
	options="--ms_type=async+rdma --ms_async_rdma_device_name=$dev
		--ms_async_rdma_local_gid=0000:0000:0000:0000:0000:ffff:0a00:0001
		--ms_async_rdma_receive_buffers=512 --ms_async_rdma_send_buffers=512
		--ms_async_rdma_receive_queue_len=256 --ms_async_rdma_buffer_size=8192
		--ms_crc_data=true --ms_async_op_threads=1 --no-mon-config"
	ulimit -l $((64 << 10))
	before=$(packets)
	# shellcheck disable=SC2086
	serve "$port" ceph_perf_msgr_server $options "$addr:$port" 1 0
	# shellcheck disable=SC2086
	run ceph_perf_msgr_client $options "$addr:$port" 2 4 200 0 "$size"
	stop
	says client '^ Total op 400 run time'
	has_sent 400 "$before"
}

case_ ceph_msgr ceph_perf_msgr "async+rdma, addresses by TCP, 4096 bytes, checksums"
ceph_msgr() { ceph_msgr_sized 4096; }
case_ ceph_msgr_large ceph_perf_msgr "async+rdma, addresses by TCP, 65536 bytes, checksums"
ceph_msgr_large() { ceph_msgr_sized 65536; }
