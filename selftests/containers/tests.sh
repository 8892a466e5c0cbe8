#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC1091,SC2016,SC2034,SC2086,SC2154,SC2317
#
# Tests containers and sandboxes that get the node, as root of the system that guest.sh
# boots. This is 10.0.1.1; 10.0.1.2 is another guest. Prints TAP.

. /root/lib.sh
subject=containers logs=/out
here=10.0.1.1 there=10.0.1.2

# run ARGUMENT...: a container of alice's, who is not root, with the default filter of system
# calls, and without the few capabilities that a container has by default
run() { run_in host "$@"; }

# run_in NETWORK ARGUMENT...
run_in() {
	net=$1
	shift
	as alice podman run --network="$net" --cap-drop=all \
		--security-opt=no-new-privileges "$@"
}

# has TEXT COMMAND...: it succeeds, and prints the text
has() {
	local text=$1 status
	shift
	"$@" >/tmp/out 2>&1
	status=$?
	cat /tmp/out
	[ $status = 0 ] && grep -qF -e "$text" /tmp/out
}

# lacks TEXT COMMAND...: it fails, and prints the text
lacks() {
	local text=$1
	shift
	has "$text" fails "$@"
}

fails() { ! "$@"; }

# ended NAME TEXT: the container has ended with 0 and printed the text
ended() {
	has 0 as alice timeout 60 podman wait "$1" && has "$2" as alice podman logs "$1"
}

users() {
	login alice && import alice static && import alice rping
}

cdi_file() {
	mkdir -p /etc/cdi
	rdma-post cdi generate --output /etc/cdi/rdma_post.json
}

static_program() {
	run -d --name server --device $cdi static /hello && until_true 60 listens 7472 &&
		has 'hello, client' run --device $cdi static /hello $here &&
		ended server 'hello, server'
}

# The node under both names, and nothing else: no capability, a filter of system calls
nothing_else() {
	run --device $cdi rping sh -c '
		find /dev ! -type d -a \( -name "*rdma*" -o -path "*infiniband*" \) |
			while read -r node; do
				[ -c "$node" ] && [ -r "$node" ] && [ -w "$node" ] && echo "$node"
			done
		grep -E "^(CapEff|CapBnd|Seccomp|NoNewPrivs):" /proc/self/status
		find / -xdev -name "*librdmacm*" -o -xdev -name "*libibverbs*"
		sed "s/^ */ /" /proc/self/uid_map' >/tmp/out || return
	cat /tmp/out
	tr -d '\t' </tmp/out | grep -v '^ ' | LC_ALL=C sort | diff - /root/nothing_else &&
		grep -q '^ 0 *1000 *1$' /tmp/out
}

without_node() {
	lacks 'No such' run static /hello $here
}

debian_rping() {
	run -d --name server --device $cdi rping rdma-post-run rping -s -a $here -C 5 -v &&
		until_true 60 listens 7174 &&
		has 'ping data: rdma-ping-4' run --device $cdi rping \
			rdma-post-run rping -c -a $here -C 5 -v && ended server 'rdma-ping-4'
}

# The old way: no CDI, each name by hand
device_option() {
	run -d --name server --device /dev/rdma_post static /hello &&
		until_true 60 listens 7472 &&
		has 'hello, client' run --device /dev/rdma_post static /hello $here &&
		ended server 'hello, server'
}

# sees NUMBER NAME: in this container the tool sees so many open files
sees() {
	as alice podman exec "$2" rdma-post list -j >/tmp/list
	cat /tmp/list
	[ "$(grep -c '"file":' /tmp/list)" = "$1" ]
}

# Two containers of one user; root sees both, each sees its own.
apart() {
	for port in 7201 7202; do
		run -d --name s$port --device $cdi rping \
			rdma-post-run rping -s -a $here -p $port || return
	done
	until_true 60 listens 7201 && until_true 60 listens 7202 && rdma-post list &&
		[ "$(files)" = 2 ] && sees 1 s7201 && grep -q '"pid": 1,' /tmp/list &&
		sees 1 s7202 &&
		! as alice podman exec s7201 cat /proc/2/fdinfo/3 &&
		as alice podman exec s7202 sh -c 'ls -d /proc/[0-9]*' >/tmp/out &&
		[ "$(wc -l </tmp/out)" -le 3 ]
}

other_guest() {
	run -d --name server --device $cdi rping rdma-post-run rping -s -a $here -C 5 -v &&
		until_true 60 listens 7174 && vm-sync client && vm-sync client-done &&
		ended server 'rdma-ping-4' && vm-sync server &&
		has 'rdma-ping-4' run --device $cdi rping \
			rdma-post-run rping -c -a $there -C 5 -v && vm-sync server-done
}

# pingpong NETWORK: two programs of a container connect their queue pairs by GIDs
pingpong() {
	run_in "$1" --device $cdi rping rdma-post-run sh -c \
		'ibv_rc_pingpong -g 1 & sleep 3; ibv_rc_pingpong -g 1 localhost'
}

# Addresses belong to a network namespace, also where all share the devices.
own_network() {
	lacks hello: run_in none --device $cdi static /hello $here &&
		has ' iters in ' pingpong host &&
		lacks 'Failed to modify QP to RTR' pingpong none
}

# neighbour NAME ADDRESS: a network namespace with an interface, an RDMA device and an address
neighbour() {
	ip netns add "$1" && ip link set "$1" netns "$1" &&
		ip -n "$1" addr add "$2/24" dev "$1" && ip -n "$1" link set lo up &&
		ip -n "$1" link set "$1" up &&
		ip netns exec "$1" rdma link add "rxe-$1" type rxe netdev "$1"
}

# in_left COMMAND..., in_right COMMAND...: in a container of root's in that namespace
in_left() { podman run --network=ns:/run/netns/left --cap-drop=all --device $cdi "$@"; }
in_right() { podman run --network=ns:/run/netns/right --cap-drop=all --device $cdi "$@"; }

# boxed NAME COMMAND...: in a sandbox of alice's in that namespace
boxed() {
	name=$1
	shift
	ip netns exec "$name" setpriv --reuid=alice --regid=alice --init-groups \
		bwrap --unshare-all --share-net --die-with-parent --ro-bind /images/rping / \
		--dev /dev --proc /proc --ro-bind /images/static /tmp \
		--dev-bind /dev/rdma_post /dev/rdma_post "$@"
}

# theirs PINGPONG TEXT: the left one cannot use the right one's address by its GID
theirs() {
	lacks "$2" in_left rping rdma-post-run sh -c \
		"$1 -d rxe-right -g 1 & sleep 3; $1 -d rxe-right -g 1 localhost" &&
		has ' iters in ' in_left rping rdma-post-run sh -c \
			"$1 -d rxe-left -g 1 & sleep 3; $1 -d rxe-left -g 1 localhost"
}

# Two containers, each with an address of its own, talk. Neither can use the other's. For a driver
# that knows network namespaces.
neighbours() {
	tar -C /images/static -c . | podman import -q - static &&
		tar -C /images/rping -c . | podman import -q - rping &&
		ip link add left type veth peer name right &&
		neighbour left 10.5.0.1 && neighbour right 10.5.0.2 || return
	in_left -d --name server static /hello && until_true 60 listens 7472 &&
		has 'hello, client' in_right static /hello 10.5.0.1 &&
		has 'hello, server' podman logs server || return
	boxed left /tmp/hello >/tmp/server &
	until_true 60 listens 7472 && has 'hello, client' boxed right /tmp/hello 10.5.0.1 &&
		wait $! && grep -x 'hello, server' /tmp/server || return
	lacks 'Cannot assign' in_left rping rdma-post-run rping -s -a 10.5.0.2 &&
		theirs ibv_rc_pingpong 'Failed to modify QP to RTR' &&
		theirs ibv_ud_pingpong 'Failed to create AH' &&
		lacks 'Cannot assign' in_left rping rdma-post-run \
			udaddy -b 10.5.0.2 -s 10.5.0.2 &&
		lacks 'Cannot assign' in_left rping rdma-post-run \
			mckey -M 239.0.0.1 -b 10.5.0.2
}

memlock() {
	has 'registered 4' run --device $cdi --ulimit memlock=8388608 static /region 4 &&
		lacks 'ibv_reg_mr: Cannot allocate' run --device $cdi \
			--ulimit memlock=1048576 static /region 4
}

memory() {
	has 'registered 8' run --device $cdi --memory=48m static /region 8 || return
	run --name big --device $cdi --memory=48m static /region 96
	[ $? = 137 ] && dmesg | grep 'Memory cgroup out of memory: Killed .*(region)' &&
		[ "$(files)" = 0 ]
}

parameter() { echo "$2" >"/sys/module/rdma_post/parameters/$1"; }

# Bytes that all open files have pinned; one file may have several descriptors
pinned() {
	cat /proc/[0-9]*/fdinfo/* 2>/dev/null | awk '/^rpost-file:/ { file = $2 }
		/^rpost-bytes-pinned:/ && !seen[file]++ { sum += $2 } END { print sum + 0 }'
}

# A gibibyte for a container with Docker's limit of locked memory: its own limit of memory
# holds, another container keeps what it has, and all of it comes back.
gibibyte_tests() {
	as alice podman rm -fa >/dev/null
	run -d --name neighbour --device $cdi --ulimit memlock=65536 static /region 64 2 hold &&
		until_true 60 eval '[ "$(pinned)" = 67108864 ]' &&
		has 'registered 1024' run --device $cdi --ulimit memlock=65536 \
			static /region 1024 2 || return
	run --name big --device $cdi --ulimit memlock=65536 --memory=256m static /region 1024 2
	[ $? = 137 ] && [ "$(pinned)" = 67108864 ] &&
		run -d --name killed --device $cdi --ulimit memlock=65536 \
			static /region 1024 2 hold &&
		until_true 120 eval '[ "$(pinned)" = 1140850688 ]' || return
	as alice podman kill killed && until_true 60 eval '[ "$(pinned)" = 67108864 ]' &&
		as alice podman ps | grep neighbour
}

gibibyte() {
	parameter memlock 0 && parameter registration fast && gibibyte_tests
	status=$?
	parameter memlock 1
	parameter registration auto
	lacks 'ibv_reg_mr: Cannot allocate' run --device $cdi --ulimit memlock=65536 \
		static /region 1 && return $status
}

# limited SLICE COMMAND...: it fails while the slice may have one object of the device only,
# and works before and afterwards. The limit goes before the slice could: kernels before 7.2 keep
# limits of cgroups that are removed, and crash when the device is removed.
limited() {
	max=/sys/fs/cgroup/$1/rdma.max
	shift
	has 'registered 1' "$@" && echo rxe0 hca_object=1 >$max || return
	lacks 'temporarily unavailable' "$@"
	status=$?
	echo rxe0 hca_object=max >$max
	has 'registered 1' "$@" && return $status
}

# systemd does not know this controller, and leaves it alone.
rdma_cgroups() {
	echo +rdma >/sys/fs/cgroup/cgroup.subtree_control
}

objects_limit() {
	rdma_cgroups && limited user.slice run --device $cdi static /region 1
}

# Killed while messages and a region are under way: all that they had on the device goes.
killed() {
	before=$(objects)
	rdma_cgroups && run -d --name server --device $cdi rping rdma-post-run rping -s -a $here -P &&
		until_true 60 listens 7174 &&
		run -d --name client --device $cdi rping rdma-post-run rping -c -a $here &&
		run -d --name region --device $cdi static /region 2 2 hold &&
		until_true 60 eval '[ $(files) = 3 ]' &&
		until_true 60 eval 'cat /proc/[0-9]*/fdinfo/* 2>/dev/null | grep -q state=connected' &&
		objects && [ "$(objects)" != "$before" ] &&
		cat /sys/fs/cgroup/user.slice/rdma.current &&
		grep -q 'hca_object=[1-9]' /sys/fs/cgroup/user.slice/rdma.current &&
		as alice podman kill client && as alice podman kill server region &&
		until_true 60 eval '[ "$(objects)" = "$before" ]' && objects && [ "$(files)" = 0 ] &&
		cat /sys/fs/cgroup/user.slice/rdma.current &&
		grep -q 'rxe0 hca_handle=0 hca_object=0' /sys/fs/cgroup/user.slice/rdma.current
}

# sandbox ARGUMENT...: bubblewrap of alice's: all namespaces but the network's
sandbox() {
	as alice bwrap --unshare-all --share-net --die-with-parent "$@"
}

bubblewrap() {
	set -- --dev /dev --ro-bind /images/static /app
	sandbox "$@" --dev-bind /dev/rdma_post /dev/rdma_post /app/hello >/tmp/server &
	until_true 60 listens 7472 &&
		has 'hello, client' sandbox "$@" --dev-bind /dev/rdma_post /dev/rdma_post \
			/app/hello $here && wait $! && grep -x 'hello, server' /tmp/server &&
		lacks 'No such' sandbox "$@" /app/hello $here
}

bubblewrap_rping() {
	set -- --ro-bind /images/rping / --dev /dev --proc /proc \
		--dev-bind /dev/rdma_post /dev/rdma_post
	run -d --name server --device $cdi rping rdma-post-run rping -s -a $here -C 5 -v &&
		until_true 60 listens 7174 &&
		has 'rdma-ping-4' sandbox "$@" rdma-post-run rping -c -a $here -C 5 -v &&
		ended server 'rdma-ping-4'
}

# service ARGUMENT...: a service without privileges and devices
service() {
	systemd-run --quiet --wait --pipe -p DynamicUser=yes -p NoNewPrivileges=yes \
		-p CapabilityBoundingSet= -p ProtectSystem=strict -p ProtectHome=yes \
		-p DevicePolicy=closed -p LimitMEMLOCK=8M "$@"
}

systemd_service() {
	lacks 'not permitted' service /images/static/region 1 &&
		has 'registered 1' service -p 'DeviceAllow=/dev/rdma_post rw' \
			/images/static/region 1 &&
		has 'registered 1' service -p PrivateDevices=yes -p BindPaths=/dev/rdma_post \
			-p 'DeviceAllow=/dev/rdma_post rw' /images/static/region 1 &&
		lacks 'Cannot allocate' service -p 'DeviceAllow=/dev/rdma_post rw' \
			/images/static/region 16
}

# Containers of root's
rootful() {
	tar -C /images/static -c . | podman import -q - static &&
		rdma_cgroups && limited machine.slice podman run --network=host --cap-drop=all \
			--device $cdi static /region 1
}

tests='users cdi_file static_program nothing_else without_node debian_rping device_option
	apart other_guest own_network memlock memory gibibyte objects_limit killed bubblewrap
	bubblewrap_rping systemd_service rootful'
grep -qw rxe_namespace_init /proc/kallsyms && tests="$tests neighbours"
[ $# = 0 ] || tests=$*
# What nothing_else prints, sorted
cat >/root/nothing_else <<-END
	/dev/infiniband/rdma_post
	/dev/rdma_post
	/usr/lib/rdma_post/libibverbs.so
	/usr/lib/rdma_post/libibverbs.so.1
	/usr/lib/rdma_post/librdmacm.so
	/usr/lib/rdma_post/librdmacm.so.1
	CapBnd:0000000000000000
	CapEff:0000000000000000
	NoNewPrivs:1
	Seccomp:2
END
echo "TAP version 13"
# shellcheck disable=SC2086
echo "1..$(set -- $tests && echo $#)"
for function in $tests; do
	check "$function" "$function"
	as alice podman rm -fa >/dev/null 2>&1
done
exit $failed
