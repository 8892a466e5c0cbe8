# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# The tests of rdma-core, in Python over pyverbs. A module of tests is a case.
# Over librdma_post no test may end worse than over the system's libraries.

# Tests of what kernel verbs do not have (Documentation/programs.rst).
pyverbs_missing='\.MWTest\.|bind_mw|atomic_write|test_mr_rereg_access '

for module in qp addr atomic cq cq_events cqex device flow fork mr odp parent_domain \
	pd qpex rdmacm relaxed_ordering rss_traffic shared_pd tag_matching; do
	mark=
	case $module in qp | odp) mark=smoke ;; esac
	case_ "pyverbs_$module" pyverbs "test_$module" $mark
	eval "pyverbs_$module() { pyverbs test_$module; }"
done

# test_modules FILE [MODULE]: run the tests, of all modules by default, since
# Python takes longer to start than most of them to run
test_modules() {
	local status=0 output=$1
	shift
	cd /opt/pyverbs || exit
	# shellcheck disable=SC2086
	timeout -k 1 "$limit" $over python3 -B tests/run_tests.py --dev "$dev" \
		--gid 1 -v "$@" </dev/null >"$output" 2>&1 || status=$?
	[ $status -le 1 ] || fail "ended with status $status"
}

# results_of FILE MODULE: print "TEST RESULT" for each test of a verbose run
results_of() {
	awk -v module="tests.$2." '/^test[a-z0-9_]* \(/ {
			name = $2
			gsub(/[()]/, "", name)
		}
		match($0, / \.\.\. (ok|FAIL|ERROR|skipped)/) &&
			index(name, module) == 1 {
			print name, substr($0, RSTART + 5, RLENGTH - 5)
		}' "$1" | sort
}

pyverbs() {
	local all=$keep/pyverbs.$library
	if [ -n "$all_pyverbs" ] && [ ! -e "$all" ]; then
		# If it fails, each module runs alone.
		: >"$all"
		test_modules "$tmp/client"
		cp "$tmp/client" "$all"
	elif [ "$tries" = 0 ] && [ -s "$all" ]; then
		cp "$all" "$tmp/client"
	else
		test_modules "$tmp/client" "tests.$1"
	fi
	results_of "$tmp/client" "$1" >"$tmp/results"
	[ -s "$tmp/results" ] || fail "no test ran"
	if [ "$library" = system ]; then
		cp "$tmp/results" "$keep/$1"
	else
		compare_tests "$keep/$1" "$tmp/results"
	fi
	grep -q ' ok$' "$tmp/results" || skip "none of its tests can run"
}

# compare_tests SYSTEM RESULTS: fail if a test ends worse than over the system
compare_tests() {
	[ -s "$1" ] || skip "no results over the system's libraries"
	[ "$(cut -d ' ' -f 1 "$1")" = "$(cut -d ' ' -f 1 "$2")" ] ||
		fail "other tests than over the system's libraries"
	join "$1" "$2" | grep -vE "$pyverbs_missing" |
		awk '$2 == "ok" && $3 != "ok" ||
			$2 == "skipped" && $3 ~ /FAIL|ERROR/' >"$tmp/worse"
	[ ! -s "$tmp/worse" ] || fail "$(wc -l <"$tmp/worse") tests end worse"
}
