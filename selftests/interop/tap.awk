# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# awk -v suite=S -v kernel=K -v name=NAME -v n=N -f tap.awk expected results:
# prints the results as TAP, numbered from N + 1.
#
# A comment line for each program, and one for all, counts passed cases, and
# tries if there were more tries than cases; repetitions of cases that are known
# to fail do not count.  A warning names each case that needed more tries over
# rdma_post only.  The exit status is 1 if a case failed that is not expected to
# fail, or passed although it is.

BEGIN { FS = "|" }

FNR == NR {
	if (!/^#/ && ($1 == "*" || $1 == suite) && ($2 == "*" || $2 == kernel))
		known[$3, $4] = $5
	next
}

{
	test = "interop." name "." $4 "." $1
	reason = known[$4, $1]
	n++
	if ($5 == "skip")
		print "ok " n " " test " # SKIP " $6
	else if ($5 == "failed" && reason != "")
		print "ok " n " " test " # SKIP known to fail: " reason
	else if ($5 == "failed")
		print "not ok " n " " test " # " $6
	else if (reason != "")
		print "not ok " n " " test " # passes, though expected to fail: " reason
	else
		print "ok " n " " test ($8 > 1 ? " # " $8 " tries" : "")
	if (($5 == "failed") != (reason != ""))
		bad = 1
	if (!($2 in seen)) {
		seen[$2] = 1
		order[++programs] = $2
	}
	again = $8 > 1 && reason == "" ? $8 - 1 : 0
	add($2, $4)
	add("all", $4)
	if ($4 == "system")
		system_again[$1] = again
	else if (again && $1 in system_again && !system_again[$1])
		warning[++warnings] = $2 " (" $1 "): " $8 \
			" tries over rdma_post, one over the system's library"
}

function add(program, library) {
	cases[program, library]++
	tries[program, library] += 1 + again
	if ($5 == "ok")
		passed[program, library]++
}

function cell(program, library,    n) {
	n = cases[program, library]
	if (!n)
		return "not run"
	return passed[program, library] + 0 " of " n " cases" \
		(tries[program, library] > n ? " (" tries[program, library] " tries)" : "")
}

function line(program) {
	print "# " name ": " program " | " cell(program, "system") " | " \
		cell(program, "rdma_post")
}

END {
	print "# " name ": program | system | rdma_post"
	for (i = 1; i <= programs; i++)
		line(order[i])
	line("all")
	for (i = 1; i <= warnings; i++)
		print "# retried: " name ": " warning[i]
	exit bad
}
