# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# The tests of rdma-core, in Python over pyverbs. A module of tests is a case.
# Over librdma_post no test may end worse than over the system's libraries. And an example.

# Tests of what is missing (Documentation/programs.rst).
pyverbs_missing='\.MWTest\.|bind_mw|atomic_write|test_mr(ex)?_rereg_(access|atomic) '
pyverbs_missing="$pyverbs_missing|privileged_qkey |rc_flush"
[ "$release" = bookworm ] || pyverbs_missing="$pyverbs_missing|test_get_pkey_index "

modules='qp addr atomic cq cq_events cqex device flow fork mr odp parent_domain pd qpex
	rdmacm relaxed_ordering rss_traffic shared_pd tag_matching'
case $release in
trixie) modules="$modules srq" ;;
sid) modules="$modules srq buf dmah phc_timestamp" ;;
esac
# These may crash Python; see test_modules().
alone='flow parent_domain'
for module in $modules; do
	mark=pyverbs
	case $module in qp | odp) mark='smoke pyverbs' ;; esac
	case_ "pyverbs_$module" pyverbs "test_$module" "$mark"
	eval "pyverbs_$module() { pyverbs test_$module; }"
done

# test_modules MODULE...: run these tests, and write their results
test_modules() {
	local status=0
	cd /opt/pyverbs || exit
	: >"$tmp/all"
	chmod 666 "$tmp/all"
	# shellcheck disable=SC2086
	timeout -k 1 "$limit" $over python3 -B "$here/pyverbs_tests.py" "$tmp/all" \
		--dev "$dev" --gid 1 -v "$@" </dev/null >"$tmp/client" 2>&1 || status=$?
	grep -qx end "$tmp/all" || fail "ended with status $status"
	# At Python's end pyverbs frees what skipped tests have left, after it has
	# closed the device: it may crash over the system's libraries, too.
	case $status in
	0 | 1) echo 'exit ok' ;;
	*) echo "exit ERROR" ;;
	esac >>"$tmp/all"
}

# Most modules run together, since Python takes longer to start than they to run.  If
# that fails, each runs alone.
pyverbs() {
	local all=$keep/pyverbs.$library module names=
	if [ -n "$all_pyverbs" ] && [ ! -e "$all" ]; then
		: >"$all"
		for module in $modules; do
			case " $alone " in
			*" $module "*) ;;
			*) names="$names tests.test_$module" ;;
			esac
		done
		limit=$((limit * 3))
		# shellcheck disable=SC2086
		test_modules $names
		cp "$tmp/all" "$all"
	elif [ "$tries" = 0 ] && [ -s "$all" ] && grep -q "^tests\.$1\." "$all"; then
		cp "$all" "$tmp/all"
	else
		test_modules "tests.$1"
	fi
	grep -E "^tests\.$1\.|^exit " "$tmp/all" | sort >"$tmp/results"
	grep -q '^tests' "$tmp/results" || fail "no test ran"
	if [ "$library" = system ]; then
		cp "$tmp/results" "$keep/$1"
	else
		compare_tests "$keep/$1" "$tmp/results"
	fi
	grep -q '^tests.* ok$' "$tmp/results" || skip "none of its tests can run"
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

case_ hello_pyverbs hello_pyverbs.py "a line each way" smoke
hello_pyverbs() {
	serve 7472 python3 -B "$here/hello_pyverbs.py"
	run python3 -B "$here/hello_pyverbs.py" "$addr"
	ends
	lines client '^hello, client$' 1
	lines server '^hello, server$' 1
}
