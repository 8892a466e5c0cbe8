# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Gets packages of Debian suites that the host does not use. Each suite has a
# separate apt state, so that the system's configuration does not change; only
# its mirror and key ring are used. Sourced by fetch.sh, userland.sh and interop/.

apt_retries=5

# keep_errors COMMAND...: run it, and set errors to what it writes to standard error
keep_errors() {
	{ errors=$(export LC_ALL=C; set -e; "$@" 2>&1 >&3 3>&-); } 3>&1
}

# give_up WHAT: die with one sentence, made of WHAT and errors. A disk without space is
# named as that.
give_up() {
	local line
	case ${errors,,} in
	*"no space left"* | *"enough free space"* | *"tar: "*": wrote only "*)
		line=$(df -Pm "$cache_dir" | awk 'NR == 2 { print $4 }' || true)
		die_status=4 die "no space left in $cache_dir ($line MB free)"
		;;
	esac
	line=$(grep -m 1 '^E: ' <<<"$errors" || grep -m 1 -v WARNING <<<"$errors" || true)
	line=${line#E: }
	line=${line#"vm: $prog: "}
	die_status=4 die "cannot $1${line:+: $line}"
}

# attempt WHAT COMMAND...: run it, or give up. Needs set -e, and must not be part of a
# condition, or else a function goes on after a failure.
attempt() {
	local what=$1 status
	shift
	set +e
	keep_errors "$@"
	status=$?
	set -e
	[ "$status" = 0 ] || give_up "$what"
}

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
	if ! apt_source_line Debian "$suite" >"$dir/sources.list"; then
		keep_errors apt-get -qq -o Acquire::Retries="$apt_retries" update || true
		apt_source_line Debian "$suite" >"$dir/sources.list" ||
			give_up "find Debian's archive in the lists of the host's apt"
	fi
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

# Read the package lists of a suite. Return 1 if the archive does not have it.
apt_read() {
	say "reading the package lists of $1"
	apt_setup "$1"
	# Without this mode it is no error that lists could not be read.
	keep_errors apt_run "$1" apt-get -o APT::Update::Error-Mode=any update && return
	[[ $errors == *"does not have a Release file"* ]] ||
		give_up "download the package lists of $1"
	return 1
}

apt_update() { apt_read "$1" || give_up "download the package lists of $1"; }

# apt_names SUITE [PREFIX]: print the names of its packages
apt_names() {
	attempt "read the package lists of $1" apt_run "$1" apt-cache pkgnames "${@:2}"
}

# apt_kernel SUITE VERSION: print the newest release of it, as in "7.2.13+deb14-amd64",
# of which the suite has image and headers; VERSION is a pattern
apt_kernel() {
	local names
	names=$(apt_names "$1" linux-)
	sed -nE "s/^linux-(image|headers)-($2\.[0-9][^-]*(-[0-9]+)?-amd64)$/\2/p" \
		<<<"$names" | sort | uniq -d | sort -V | tail -n 1
}

# Print the packages of a release of the kernel.
apt_kernel_packages() {
	local suite=$1 release=$2 packages
	packages=$(attempt "read the package lists of $suite" apt_run "$suite" \
		apt-cache depends --recurse --no-recommends --no-suggests \
		--no-conflicts --no-breaks --no-replaces --no-enhances \
		"linux-image-$release" "linux-headers-$release")
	grep -E '^linux-(image|binary|modules|headers|kbuild)-[0-9]' <<<"$packages" |
		grep -v -- -unsigned
}

# apt_download SUITE DIRECTORY PACKAGE...
apt_download() {
	local suite=$1 dir=$2 what=$3
	shift 2
	say "downloading from $suite: $*"
	[ $# = 1 ] || what+=" and $(($# - 1)) more"
	mkdir -p "$dir"
	(cd "$dir" && attempt "download $what from $suite" apt_run "$suite" apt-get download "$@")
}

# apt_source SUITE DIRECTORY PACKAGE: download its source and unpack it
apt_source() {
	local suite=$1 dir=$2 what="the source of $3 from $1" state=$cache_dir/apt/$1-source
	apt_setup "$suite"
	mkdir -p "$dir" "$state"/{lists,archives}/partial
	: >"$state/status"
	sed 's/^deb /deb-src /' "$cache_dir/apt/$suite/sources.list" >"$state/sources.list"
	say "downloading $what"
	attempt "download $what" apt_run "$suite-source" apt-get \
		-o APT::Update::Error-Mode=any update
	(cd "$dir" && attempt "download $what" apt_run "$suite-source" apt-get source "$3")
}
