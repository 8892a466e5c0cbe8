# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# Ceph: its messenger, and a cluster.

only_in trixie

# By default each process registers 4 GiB.
ceph_options="ms_type=async+rdma ms_async_rdma_device_name=$dev
	ms_async_rdma_local_gid=0000:0000:0000:0000:0000:ffff:0a00:0001
	ms_async_rdma_receive_buffers=512 ms_async_rdma_send_buffers=512
	ms_async_rdma_receive_queue_len=256 ms_async_rdma_buffer_size=8192
	ms_async_op_threads=1"

# ceph_msgr_sized SIZE: two clients with four messages in flight, 200 messages each,
# whose checksums the receiver compares.
ceph_msgr_sized() {
	local size=$1 options before
	# shellcheck disable=SC2086
	options="$(printf -- '--%s ' $ceph_options) --ms_crc_data=true --no-mon-config"
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

# A cluster of a monitor and an OSD that keeps objects in memory: 100 objects of 64 KiB,
# written and read by rados bench, which compares what it reads.
case_ ceph_rados ceph-osd/rados "async+rdma, a monitor and an OSD; rados bench, data compared"
ceph_rados() {
	local osd=00000000-0000-4000-8000-000000000001 before
	export CEPH_CONF="$tmp/.conf"
	ceph_conf >"$CEPH_CONF"
	ulimit -l $((64 << 10))
	before=$(packets)
	mkdir -m 777 "$tmp/mon.data" "$tmp/osd.data"
	run ceph-mon -i a --mkfs --public-addrv "[v2:$addr:$port/0]"
	start mon ceph-mon -i a -f
	run ceph osd new $osd
	run ceph-osd -i 0 --mkfs --osd-uuid $osd
	start osd ceph-osd -i 0 -f
	run ceph osd crush add osd.0 1 root=default host=host
	run ceph osd pool create pool 1
	run rados -p pool bench "$limit" write -b 65536 -t 4 --max-objects 100 --no-cleanup
	says client '^Total writes made: +100$'
	run rados -p pool bench "$limit" seq -t 4
	says client '^Total reads made: +100$'
	says_not client 'not correct|errors'
	stop osd
	stop mon
	# 100 objects each way, in packets of at most 4096 bytes.
	has_sent 3200 "$before"
}

ceph_conf() {
	cat <<-END
		[global]
		fsid = 00000000-0000-4000-8000-000000000000
		mon_host = v2:$addr:$port/0
		public_addr = $addr
		auth_cluster_required = none
		auth_service_required = none
		auth_client_required = none
		log_file =
		run_dir = $tmp
		mon_cluster_log_to_file = false
		mon_data = $tmp/mon.data
		mon_data_avail_crit = 0
		mon_allow_pool_size_one = true
		osd_data = $tmp/osd.data
		osd_journal = $tmp/osd.data/journal
		osd_objectstore = memstore
		osd_erasure_code_plugins =
		osd_extblkdev_plugins =
		osd_pool_default_size = 1
		osd_pool_default_min_size = 1
		osd_crush_chooseleaf_type = 0
	END
	# shellcheck disable=SC2086
	printf '%s\n' $ceph_options
}
