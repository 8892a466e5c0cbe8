#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC1091,SC2016,SC2034,SC2086,SC2154
#
# The demonstration of demo-containers.sh: types commands as alice and root of the system that
# guest.sh boots, and fails with the first that does not do what it shall.

. /root/lib.sh
address=10.0.0.1

fail() {
	echo "FAILED: $*"
	exit 1
}

# type_as USER COMMAND: show the command and its output
type_as() {
	if [ "$1" = root ]; then
		echo "root# $2"
		sh -c "$2" 2>&1
	else
		echo "$1\$ $2"
		# alice has this in her containers.conf.
		as "$1" sh -c "$2" 2>&1
	fi
}

# shows TEXT USER COMMAND: and the output must have the text
shows() {
	text=$1
	shift
	type_as "$@" >/tmp/out
	cat /tmp/out
	tail -n +2 /tmp/out | grep -qF -e "$text" || fail "$2"
}

quiet() { "$@" >/tmp/out 2>&1 || { cat /tmp/out && fail "$*"; }; }

# cgroup_of CONTAINER: its name below where cgroups are mounted
cgroup_of() {
	until_true 60 eval '[ "$(as alice podman inspect --format "{{.State.CgroupPath}}" '"$1"')" ]'
	as alice podman inspect --format '{{.State.CgroupPath}}' "$1" | sed 's|^/||'
}

say() { printf '\n-- %s\n' "$*"; }

quiet login alice
quiet import alice static
quiet import alice rping
mkdir -p /etc/cdi /home/alice/.config/containers
# So that the commands are short
cat >/home/alice/.config/containers/containers.conf <<-END
	[containers]
	netns = "host"
	default_capabilities = []
END
chown -R alice: /home/alice/.config
run="podman run --device $cdi"
before=$(objects)
echo +rdma >/sys/fs/cgroup/cgroup.subtree_control

say "root lets engines know the node; alice, an ordinary user, gives it to containers"
type_as root 'rdma-post cdi generate --output /etc/cdi/rdma_post.json'
say "an image of one static program, without any package"
quiet as alice sh -c "$run -d --name server static /hello"
echo "alice\$ $run -d --name server static /hello"
quiet until_true 120 listens 7472
shows 'hello, client' alice "$run static /hello $address"
shows 'hello, server' alice 'podman logs server'
say "Debian's rping, as it is, in two containers that do not see each other"
for command in "-d --name a rping rdma-post-run rping -s -P -a $address" \
	"-d --name b rping rdma-post-run rping -c -a $address"; do
	echo "alice\$ $run $command"
	quiet as alice sh -c "$run $command"
	quiet until_true 120 listens 7174
done
quiet until_true 60 eval 'grep -qs state=connected /proc/[0-9]*/fdinfo/*'
shows rping root 'rdma-post list'
shows rping alice 'podman exec b rdma-post list'
[ "$(grep -c rping /tmp/out)" = 1 ] || fail "the container sees more than its own"
say "limits hold"
shows 'Cannot allocate memory' alice "$run --ulimit memlock=1048576 static /region 4"
shows hca_object= root 'cat /sys/fs/cgroup/user.slice/rdma.current'
# One more than there are; a region needs two.
objects=$(sed -n 's/.*hca_object=\([0-9]*\).*/\1/p' /tmp/out)
[ "$objects" -gt 2 ] || fail "containers are not charged"
type_as root "echo rxe0 hca_object=$((objects + 1)) >/sys/fs/cgroup/user.slice/rdma.max"
shows 'temporarily unavailable' alice "$run static /region 1"
say "a killed container leaves nothing"
# Without a, b would end by itself.
for name in b a; do
	type_as alice "podman kill $name" >/tmp/out
	cat /tmp/out
	[ "$(tail -n 1 /tmp/out)" = $name ] || fail "podman kill $name"
done
quiet until_true 60 eval '[ "$(objects)" = "$before" ] && [ "$(files)" = 0 ]'
shows 'qp 1 ' root 'rdma resource show'
echo rxe0 hca_object=max >/sys/fs/cgroup/user.slice/rdma.max
say "tenants: two that share the device 1 : 3, by operations in a second"
for name in 1 3; do
	quiet as alice sh -c "$run -d --name s$name rping rdma-post-run rping -s -P -a $address -p 710$name"
	quiet until_true 120 listens 710$name
	quiet as alice sh -c "$run -d --name c$name rping rdma-post-run rping -c -a $address -p 710$name"
	type_as root "rdma-post limit $(cgroup_of c$name) --ops ${name}0"
done
posted() { rdma-post limit -j | sed -n 's/.*"operations": \([0-9]*\).*/\1/p' | tr '\n' ' '; }
then=$(posted)
sleep 10
now=$(posted)
shows '--ops 30' root "rdma-post limit | sed 's/[^ ]*libpod-\\(.\\{12\\}\\)[^ ]*/\\1/'"
# in_shares THEN1 THEN3 NOW1 NOW3
in_shares() {
	echo "in ten seconds: $(($3 - $1)) and $(($4 - $2))"
	[ $((($4 - $2) * 10)) -gt $((($3 - $1) * 28)) ] &&
		[ $((($4 - $2) * 10)) -lt $((($3 - $1) * 32)) ]
}
in_shares $then $now || fail "not 1 : 3"
as alice podman rm -fa -t 0 >/dev/null 2>&1
say "one that may reach one address only, and one that has none"
quiet as alice sh -c "$run -d --name one rping busybox sleep 1000"
type_as root "rdma-post limit $(cgroup_of one) --connect 10.0.0.1 --no-listen"
shows 'not permitted' alice "podman exec one rdma-post-run rping -c -a 10.0.0.9"
shows 'not permitted' alice "podman exec one rdma-post-run rping -s"
shows 'hello' alice "$run --network=none static /hello $address"
say "a gibibyte with 64 KiB of ulimit -l"
for parameter in memlock=0 registration=fast; do
	type_as root "echo ${parameter#*=} >/sys/module/rdma_post/parameters/${parameter%=*}"
done
shows 'registered 1024' alice "$run --ulimit memlock=65536 static /region 1024 2"
say "bubblewrap"
sandbox='bwrap --unshare-all --share-net --dev /dev --ro-bind /images/static /app'
shows 'No such' alice "$sandbox /app/region 1"
shows 'registered 1' alice "$sandbox --dev-bind /dev/rdma_post /dev/rdma_post /app/region 1"
