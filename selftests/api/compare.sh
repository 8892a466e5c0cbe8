#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: compare.sh DIRECTORY [NAME...]
#
# Compares the two libraries. For every NAME, by default all in DIRECTORY, it
# runs NAME-sys over the system's librdmacm and NAME-rpost over librdma_post,
# and prints a TAP line for each test. A test is ok if it passes over both; it
# is skipped, with the reason, if it is skipped over one and fails over none;
# otherwise it is not ok, and the exit status is 1. With RPOST_ONLY, api/NAME, runs only
# that, if it is one of them.

dir=${1:?usage: compare.sh DIRECTORY [NAME...]}
shift
if [ $# = 0 ]; then
	for program in "$dir"/*-sys; do
		[ -x "$program" ] || continue
		program=${program##*/}
		set -- "$@" "${program%-sys}"
	done
fi
[ $# -gt 0 ] || {
	echo "Bail out! no programs in $dir"
	exit 1
}

if [ -n "${RPOST_ONLY-}" ]; then
	case " $* " in
	*" ${RPOST_ONLY#api/} "*) set -- "${RPOST_ONLY#api/}" ;;
	*) exit 0 ;;
	esac
	[ "$RPOST_ONLY" = "api/$1" ] || exit 0
fi

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# results PROGRAM runs it and prints lines "name<tab>result<tab>reason". The
# name comes from the line before each test, since the harness prints none when
# it skips a test.
results() {
	"$1" >"$tmp/log" 2>&1 </dev/null
	status=$?
	awk -v OFS='\t' -v status="$status" '
		/^# +RUN / { test = $3; next }
		/^1\.\.0.*# SKIP/ { sub(/.*# SKIP */, ""); print "all", "skip", $0; exit }
		/^ok .*# SKIP/ { reason = $0; sub(/.*# SKIP */, "", reason)
			print test, "skip", reason; test = ""; next }
		/^ok / { print test, "ok", ""; test = ""; next }
		/^not ok / { print test, "failed", ""; bad++; test = ""; next }
		END {
			if (test != "")
				print test, "died", "exit status " status
			else if (status != 0 && status != 4 && !bad)
				print "exit", "failed", "exit status " status
		}' "$tmp/log"
	# Show the harness's messages about failures.
	if grep -q '^not ok ' "$tmp/log" || [ "$status" -gt 1 ]; then
		grep -vE '^(TAP|1\.\.|ok |not ok )|^# +(RUN|OK) ' "$tmp/log" |
			sed "s|^#* *|# ${1##*/}: |" >&3
	fi
}

exec 3>&1
echo "TAP version 13"
for name; do
	for library in sys rpost; do
		if [ -x "$dir/$name-$library" ]; then
			results "$dir/$name-$library" >"$tmp/$library"
		else
			printf 'all\tmissing\t%s\n' "no $name-$library" >"$tmp/$library"
		fi
	done
	awk -F '\t' -v name="$name" '
		NR == FNR { sys[$1] = $2; why[$1] = $3; order[++n] = $1; next }
		{ rpost[$1] = $2; reason[$1] = $3; if (!($1 in sys)) order[++n] = $1 }
		function result(r) { return r == "" ? "not run" : r }
		END {
			for (i = 1; i <= n; i++) {
				t = order[i]
				if (sys[t] == "ok" && rpost[t] == "ok")
					print "ok", name "." t
				else if (sys[t] ~ /^(ok|skip)$/ && rpost[t] ~ /^(ok|skip)$/)
					print "ok", name "." t, "# SKIP", \
						sys[t] == "skip" ? "librdmacm: " why[t] : \
						"librdma_post: " reason[t]
				else
					print "not ok", name "." t, "# librdmacm:", \
						result(sys[t]), why[t], "librdma_post:", \
						result(rpost[t]), reason[t]
			}
		}' "$tmp/sys" "$tmp/rpost"
done | awk '
	/^ok / { sub(/^ok /, ""); print "ok", ++n, $0; if (/# SKIP/) skipped++; next }
	/^not ok / { sub(/^not ok /, ""); print "not ok", ++n, $0; failed++; next }
	{ print }
	END {
		print "1.." n + 0
		printf "# %d tests: %d agree, %d differ or fail, %d skipped\n", \
			n, n - failed - skipped, failed, skipped
		exit failed > 0 || n == 0
	}'
