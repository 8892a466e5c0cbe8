# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# TAP for the tests of packages. Sourced by these, after vm/lib.sh; they set $subject, the
# first word of the tests' names, and $logs, a directory.

# shellcheck source=../lib/tap.sh
. "$top_dir/selftests/lib/tap.sh"

# The pages of the documentation, which the packages must have
mapfile -t pages < <(cd "$top_dir/Documentation" && printf '%s\n' *.rst | sed 's/\.rst$//')
