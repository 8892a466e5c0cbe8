# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
# shellcheck disable=SC1091,SC2034,SC2086
# What the tests and the demo of containers share. Sourced in the guest, as root.

. /root/tap.sh
cdi=rdma_post.local/node=all

# login USER: start the user's systemd, in which as runs commands
login() {
	uid=$(id -u "$1")
	loginctl enable-linger "$1"
	systemctl start "user@$uid.service"
	cgroup=/sys/fs/cgroup/user.slice/user-$uid.slice/user@$uid.service/shell
	mkdir $cgroup
	chown -R "$1:$1" $cgroup
}

# as USER COMMAND...: as that user, in his part of the cgroups
as() {
	user=$1 uid=$(id -u "$1")
	shift
	sh -c 'echo $$ >"$0/cgroup.procs" && cd "$1" && shift && exec "$@"' \
		"/sys/fs/cgroup/user.slice/user-$uid.slice/user@$uid.service/shell" "/home/$user" \
		setpriv --reuid="$user" --regid="$user" --init-groups env -i \
		PATH=/usr/bin:/bin HOME="/home/$user" LC_ALL=C \
		XDG_RUNTIME_DIR="/run/user/$uid" \
		DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$uid/bus" "$@"
}

# import USER IMAGE: make the user's image of a folder
import() {
	as "$1" sh -c "tar -C /images/$2 -c . | podman import -q - $2"
}

# listens PORT: a program listens there
listens() {
	grep -qs "^rpost-connection:.* state=listen .*src=[^ ]*:$1\( \|\$\)" /proc/[0-9]*/fdinfo/*
}

# Objects of the device, and open files of the node
objects() { rdma resource show; }
files() { rdma-post list -j | grep -c '"file":'; }
