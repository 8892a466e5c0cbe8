# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# fio's rdma engine; tgtd, libiscsi and QEMU over iSER.

fio_args="--ioengine=rdma --size=512k --bs=16k --thread --group_reporting"

# fio_both VERB ARGS...: the server's job receives the data that the client's
# writes. The server has more requests outstanding than the client, so that each
# send finds a receive.
#
# Only verb=send can be verified: fio verifies the requests of a job that reads,
# and with the other verbs the server's requests never complete, but wait until
# the client reports its end.  The client's job writes with verb=read, too.
fio_both() {
	local verb=$1
	shift
	# shellcheck disable=SC2086
	serve "$port" fio $fio_args --name="$verb" --port="$port" --rw=read \
		--iodepth=32 "$@"
	# shellcheck disable=SC2086
	run fio $fio_args --name="$verb" --port="$port" --rw=write --iodepth=4 \
		--hostname="$addr" --verb="$verb" "$@"
	ends
	says client "$verb: .*err= 0"
	says client 'issued rwts: total=0,32,0,0'
	says server "$verb: .*err= 0"
}

case_ fio_write fio "verb=write"
fio_write() { fio_both write; }
case_ fio_read fio "verb=read"
fio_read() { fio_both read; }
case_ fio_send fio "verb=send" smoke
fio_send() {
	fio_both send
	says server 'issued rwts: total=32,0,0,0'
}
case_ fio_send_verify fio "verb=send, the receiver verifies (crc32c)"
fio_send_verify() {
	fio_both send --verify=crc32c
	says_not server 'verify: bad|verify failed'
}

# The same receiver must complain if the sender adds no checksums to its data.
case_ fio_send_unverified fio "verb=send without checksums, the receiver complains"
fio_send_unverified() {
	# shellcheck disable=SC2086
	serve "$port" fio $fio_args --name=send --port="$port" --rw=read \
		--iodepth=32 --verify=crc32c
	# shellcheck disable=SC2086
	start client fio $fio_args --name=send --port="$port" --rw=write --iodepth=4 \
		--hostname="$addr" --verb=send
	written server 'verify: bad|verify failed'
}

case_ fio_mixed fio "a job that writes and one that reads"
fio_mixed() {
	local other=$((port + 1000)) args
	args="$fio_args --iodepth=8"
	# shellcheck disable=SC2086
	serve "$port" fio $args --rw=read --name=one --port="$port" \
		--name=two --port="$other"
	# shellcheck disable=SC2086
	run fio $args --rw=write --hostname="$addr" \
		--name=one --port="$port" --verb=write \
		--name=two --port="$other" --verb=read
	ends
	says client 'err= 0'
	says client 'issued rwts: total=0,64,0,0'
}

# A target with one disk of 8 MiB of random data.  It registers 16 MiB.
target() {
	as_root
	initiator=iqn.2024-01.org.example:host
	target_name=iqn.2024-01.org.example:disk
	url=iser://$addr:3260/$target_name/1
	mkdir -p /run/tgtd
	dd if=/dev/urandom of="$tmp/.disk" bs=1M count=8 2>/dev/null
	start server tgtd -f -C "$port" --iser pool_sz_mb=16
	local n=0
	until [ -e "/run/tgtd/socket.$port" ] && listening 3260; do
		running server || fail "tgtd ended before it listened"
		n=$((n + 1))
		[ $n -lt $((limit * 20)) ] || fail "tgtd does not listen"
		sleep 0.05
	done
	tgt --lld iser --mode target --op new --tid 1 --targetname $target_name
	tgt --lld iser --mode logicalunit --op new --tid 1 --lun 1 -b "$tmp/.disk"
	tgt --lld iser --mode target --op bind --tid 1 -I ALL
	tgt --lld iser --mode target --op bind --tid 1 -Q $initiator
}

tgt() { timeout -k 1 "$limit" tgtadm -C "$port" "$@" >>"$tmp/tgtadm" 2>&1; }

case_ iser_inq tgtd/iscsi-inq "iSER, inquiry" smoke
iser_inq() {
	target
	run iscsi-inq -i $initiator "$url"
	says client 'Vendor:IET'
	stop
}

case_ iser_perf tgtd/iscsi-perf "iSER, reads for two seconds"
iser_perf() {
	target
	run iscsi-perf -i $initiator -m 8 -b 16 -t 2 "$url"
	says client 'iops average [1-9]'
	stop
}

# The test leaves 256 blocks of 0xa6 bytes at the beginning of the disk.
case_ iser_write tgtd/iscsi-test-cu "iSER, writes, compared in the target's file"
iser_write() {
	local other
	target
	run iscsi-test-cu -i $initiator -d -t SCSI.Write10.Simple "$url"
	says client 'tests +1 +1 +1 +0'
	stop
	other=$(head -c 131072 "$tmp/.disk" | tr -d '\246' | wc -c)
	[ "$other" = 0 ] || fail "$other bytes on the disk are not what was written"
}

# tgtd takes at most 512 KiB in a request; that is too little for qemu-img convert.  QEMU
# gives the initiator's name itself.
case_ iser_qemu_img tgtd/qemu-img "iSER, dd of 8 MiB each way, compared in the target's file"
iser_qemu_img() {
	target
	tgt --lld iser --mode target --op bind --tid 1 -Q iqn.2008-11.org.linux-kvm
	head -c 8388608 /dev/urandom >"$tmp/.data"
	run qemu-img dd -f raw -O raw bs=256k if="$tmp/.data" of="$url"
	cmp "$tmp/.data" "$tmp/.disk" >"$tmp/cmp" 2>&1 ||
		fail "the target's file does not have what was written"
	run qemu-img dd -f raw -O raw bs=256k if="$url" of="$tmp/.read"
	cmp "$tmp/.disk" "$tmp/.read" >"$tmp/cmp" 2>&1 || fail "it has read other data"
	stop
}
