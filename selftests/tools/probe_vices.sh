#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: probe_vices.sh PROBE            in a guest with rdmasim
#        probe_vices.sh PROBE PROMISE    where the device does not keep PROMISE
#
# Tests that the probe notices keys that the device does not check: with each form of
# rdmasim's bad_rkeys, and on the other device, exactly one promise must not hold. Prints
# TAP.

probe=$1 n=0 failed=0
bad_rkeys=/sys/module/rdmasim/parameters/bad_rkeys
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# The device never gets receives of another domain (32), as the module refuses them.
forms='0 1 2 4 8 16 32'

# promise FORM: print the promise that does not hold with this form
promise() {
	case $1 in
	1) echo holds.no_key_opens_all_memory ;;
	2) echo holds.no_key_of_another_domain ;;
	4) echo holds.no_key_that_is_almost_a_regions ;;
	8) echo holds.no_byte_beyond_a_region ;;
	16) echo holds.no_access_that_was_not_granted ;;
	esac
}

# only NAME PROMISE: test that only this promise does not hold
only() {
	n=$((n + 1))
	"$probe" </dev/null >"$log" 2>&1
	sed 's/^/# | /' "$log"
	broken=$(sed -n 's/^not ok [0-9]* //p' "$log")
	held=$(grep -c '^ok [0-9]* holds\.[a-z_]*$' "$log")
	if [ "$broken" = "$2" ] && [ "$held" -ge 9 ]; then
		echo "ok $n $1: ${2:-nothing} does not hold"
	else
		failed=1
		echo "not ok $n $1: ${broken:-nothing} does not hold, $held hold"
	fi
}

echo "TAP version 13"
if [ -n "${2:-}" ]; then
	echo "1..1"
	only device "$2"
	exit $failed
fi
echo "1..$(echo "$forms" | wc -w)"
for form in $forms; do
	echo "$form" >"$bad_rkeys" || exit 1
	only "bad_rkeys=$form" "$(promise "$form")"
	echo 0 >"$bad_rkeys"
done
exit $failed
