# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Adds up TAP: prints "PASSED FAILED SKIPPED".  Where programs are nested, their
# tests count, and a program itself only if it failed in a way that none of its
# tests shows, or was skipped as a whole.  Tests that were planned and never
# reported have failed.

function close_plan() {
	if (planned > seen)
		failed += planned - seen
	if (planned > seen)
		inner_failed++
	planned = seen = 0
}

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
	if (/# SKIP/)
		skipped++
	else if (/^# +ok /)
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
			skipped++
		inner_failed = inner_seen = 0
	} else if (/# SKIP/)
		skipped++
	else if (/^ok /)
		passed++
	else
		failed++
}

END {
	close_plan()
	if (outer_planned > outer_seen)
		failed += outer_planned - outer_seen
	if (!outer_seen && !nested)
		failed++
	print passed + 0, failed + 0, skipped + 0
}
