# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2034,SC2154
# The programs of ibverbs-utils.

case_ devices ibv_devices "lists the device" smoke
devices() {
	run ibv_devices
	says client "^ +${dev}[[:space:]]+[0-9a-f]{16}"
	same_as_system client
}

case_ devinfo ibv_devinfo "device and port" smoke
devinfo() {
	run ibv_devinfo -d "$dev"
	says client "^hca_id:[[:space:]]+$dev"
	says client 'state:[[:space:]]+PORT_ACTIVE'
	says client 'link_layer:[[:space:]]+Ethernet'
	same_as_system client
}

case_ devinfo_v ibv_devinfo "-v, attributes and GIDs as over uverbs"
devinfo_v() {
	run ibv_devinfo -v -d "$dev"
	says client 'max_qp_wr:[[:space:]]+[1-9]'
	says client 'GID\[ *1\]:[[:space:]]+::ffff:10.0.0.1'
	# Kernel queues have other limits, and there are no memory windows and
	# no local registration.  rxe does not tell uverbs the effective speed, which
	# the library takes from the port's width and speed.
	same_as_system client \
		'max_(qp|srq)_wr|max_mw|device_cap_flags|MEM_|effective_speed'
}

# pingpong PROGRAM ARGS...: with -c the server checks the first byte of each
# page at the end, which must be the client's 0 and no longer its own 0x7b.  In
# ibv_srq_pingpong the server's own byte is 0, too, so -c cannot fail there.
pingpong() {
	local program=$1
	shift
	serve "$port" "$program" -d "$dev" -p "$port" "$@"
	run "$program" -d "$dev" -p "$port" "$@" "$addr"
	ends
	says client 'bytes in .* seconds'
	says server 'bytes in .* seconds'
	says_not client 'invalid data|error|fail'
	says_not server 'invalid data|error|fail'
}

case_ rc_pingpong ibv_rc_pingpong "-c, 4096 bytes" smoke
rc_pingpong() { pingpong ibv_rc_pingpong -g 1 -c -n 50; }
case_ rc_pingpong_events ibv_rc_pingpong "-c -e, sleeping"
rc_pingpong_events() { pingpong ibv_rc_pingpong -g 1 -c -e -n 50; }
case_ rc_pingpong_new_send ibv_rc_pingpong "-c -N, ibv_wr_send"
rc_pingpong_new_send() { pingpong ibv_rc_pingpong -g 1 -c -N -n 50; }
case_ rc_pingpong_ts ibv_rc_pingpong "-t, time stamps of completions"
rc_pingpong_ts() {
	refusal="isn't completion timestamp capable"
	pingpong ibv_rc_pingpong -g 1 -t -n 50
}
case_ rc_pingpong_odp ibv_rc_pingpong "-o, on-demand paging" smoke
rc_pingpong_odp() {
	refusal="isn't ODP capable"
	pingpong ibv_rc_pingpong -g 1 -c -o -n 50
}
case_ rc_pingpong_prefetch ibv_rc_pingpong "-o -P, on-demand paging, prefetched" smoke
rc_pingpong_prefetch() {
	refusal="isn't ODP capable"
	pingpong ibv_rc_pingpong -g 1 -c -o -P -n 50
}
case_ uc_pingpong ibv_uc_pingpong "-c, 4096 bytes"
uc_pingpong() { pingpong ibv_uc_pingpong -g 1 -c -n 50; }
case_ srq_pingpong ibv_srq_pingpong "-c, 16 queue pairs, one receive queue" smoke
srq_pingpong() { pingpong ibv_srq_pingpong -g 1 -c -n 100; }
case_ srq_pingpong_events ibv_srq_pingpong "-c -e, sleeping"
srq_pingpong_events() { pingpong ibv_srq_pingpong -g 1 -c -e -n 100; }
case_ srq_pingpong_odp ibv_srq_pingpong "-o, on-demand paging" smoke
srq_pingpong_odp() {
	refusal="isn't ODP capable"
	pingpong ibv_srq_pingpong -g 1 -o -n 100
}
case_ ud_pingpong ibv_ud_pingpong "-c, 1024 bytes" smoke
ud_pingpong() { pingpong ibv_ud_pingpong -g 1 -c -s 1024 -n 50; }
case_ ud_pingpong_events ibv_ud_pingpong "-c -e, sleeping"
ud_pingpong_events() { pingpong ibv_ud_pingpong -g 1 -c -e -n 50; }
case_ xsrq_pingpong ibv_xsrq_pingpong "XRC"
xsrq_pingpong() {
	refusal="Couldn't Open the XRC Domain"
	pingpong ibv_xsrq_pingpong -g 1 -n 50
}

case_ asyncwatch ibv_asyncwatch "says that the port went down and up"
asyncwatch() {
	start server ibv_asyncwatch -d "$dev"
	written server 'async event FD'
	port_down_and_up
	written server 'IBV_EVENT_PORT_ACTIVE'
	stop
	says server 'IBV_EVENT_PORT_ERR'
	says server 'IBV_EVENT_PORT_ACTIVE'
}
