# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Gets packages of Debian suites that the host does not use. Each suite has a
# separate apt state, so that the system's configuration does not change; only
# its mirror and key ring are used. Sourced by fetch.sh and userland.sh.

apt_retries=5

# Print "URI key-ring" of the archive with this Release label in the system's
# sources; the URI is "-" if they do not have it.
apt_mirror() {
	local label=$1 found uri entry keyring=
	found=$(apt-get indextargets --format \
		"\$(LABEL)|\$(REPO_URI)|\$(SOURCESENTRY)" \
		'Created-By: Packages' 2>/dev/null |
		sed -n "s/^$label|//p" | head -n 1)
	uri=${found%%|*}
	entry=${found#*|}
	entry=${entry%:*}
	if [ -n "$entry" ] && [ -r "$entry" ]; then
		keyring=$(sed -nE \
			's/^(Signed-By:|.*\[.*signed-by=) *(\/[^] ]+).*/\2/p' \
			"$entry" | head -n 1)
	fi
	[ -n "$keyring" ] || keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r "$keyring" ] || keyring=
	printf '%s %s\n' "${uri:--}" "$keyring"
}

apt_source_line() {
	local uri keyring
	read -r uri keyring < <(apt_mirror "$1")
	[ "$uri" != - ] || return 1
	printf 'deb %s%s %s main\n' "${keyring:+[signed-by=$keyring] }" "$uri" "$2"
}

# Make the state directory of a suite.
apt_setup() {
	local suite=$1 dir=$cache_dir/apt/$1 release=${1%%-*}
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	: >"$dir/status"
	apt_source_line Debian "$suite" >"$dir/sources.list" ||
		{ apt-get -qq -o Acquire::Retries="$apt_retries" update && apt_source_line Debian "$suite" \
			>"$dir/sources.list"; } ||
		die "apt knows no archive of Debian's; apt-get update may help"
	case $suite in
	sid | *-backports) ;;
	*)
		apt_source_line Debian-Security "$release-security" \
			>>"$dir/sources.list" || say "no security archive in apt's sources"
		;;
	esac
}

# apt_run SUITE TOOL ARGS: run an apt tool that sees only this suite
apt_run() {
	local dir=$cache_dir/apt/$1 tool=$2
	shift 2
	"$tool" -qq -o Dir::State="$dir" -o Dir::State::status="$dir/status" \
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir" \
		-o Dir::Etc::sourcelist="$dir/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null \
		-o APT::Architecture=amd64 -o APT::Architectures=amd64 \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries="$apt_retries" "$@"
}

apt_update() {
	say "reading the package lists of $1"
	apt_setup "$1"
	apt_run "$1" apt-get update
}

# Print the packages of a kernel: those that PACKAGE... depend on.
apt_kernel_packages() {
	local suite=$1
	shift
	apt_run "$suite" apt-cache depends --recurse --no-recommends --no-suggests \
		--no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
		grep -E '^linux-(image|binary|modules|headers|kbuild)-[0-9]' |
		grep -v -- -unsigned
}

# apt_download SUITE DIRECTORY PACKAGE...
apt_download() {
	local suite=$1 dir=$2
	shift 2
	say "downloading from $suite: $*"
	mkdir -p "$dir"
	(cd "$dir" && apt_run "$suite" apt-get download "$@")
}
