# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Adds up TAP: prints "PASSED FAILED SKIPPED".  Where programs are nested, their
# tests count, and a program itself only if it failed in a way that none of its
# tests shows, or was skipped as a whole.  Tests that were planned and never
# reported have failed, and so has each that is reported beyond the plan.
#
# With -v list=skipped, prints the skipped tests instead, "PROGRAM.TEST # SKIP REASON".
# The harness of Linux 6.1 names a skipped test only before it runs.

function close_plan() {
	if (planned > seen)
		failed += planned - seen
	if (planned > seen)
		inner_failed++
	planned = seen = 0
}

# skip(NAME, LINE)
function skip(name, line) {
	skipped++
	sub(/.*# SKIP */, "", line)
	if (list)
		print name, "# SKIP", line
}

/^# selftests: / { program = $NF }
/^(# )+ +RUN / { test = $(NF - 1); expected = 0 }
# The harness forgets what fails in the teardown of a test that was skipped.
/:Expected / { expected = 1 }

/^# +1\.\.[0-9]+/ {
	close_plan()
	nested = 1
	split($2, plan, /\.\./)
	planned = plan[2]
	inner_failed = inner_seen = 0
	next
}

/^1\.\.[0-9]+/ {
	split($1, plan, /\.\./)
	outer_planned += plan[2]
	next
}

/^# +(not )?ok / {
	seen++
	inner_seen++
	if (/# SKIP/ && !expected)
		skip(program "." test, $0)
	else if (/^# +ok / && !/# SKIP/)
		passed++
	else {
		failed++
		inner_failed++
	}
	next
}

/^(not )?ok / {
	outer_seen++
	if (/selftests: /) {
		close_plan()
		if (/^not ok/ && !inner_failed)
			failed++
		if (/# SKIP/ && !inner_seen)
			skip(program ".all", $0)
		inner_failed = inner_seen = 0
	} else if (/# SKIP/)
		skip($3, $0)
	else if (/^ok /)
		passed++
	else
		failed++
}

END {
	close_plan()
	if (outer_planned)
		failed += outer_planned > outer_seen ? outer_planned - outer_seen : \
			outer_seen - outer_planned
	if (!outer_seen && !nested)
		failed++
	if (!list)
		print passed + 0, failed + 0, skipped + 0
}
