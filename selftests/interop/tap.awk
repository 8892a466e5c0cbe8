# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# awk -v kernel=K -v n=N -f tap.awk expected results: prints TAP of the results
# of the suite, numbered from N + 1, and a line for each program.  Exit status 1
# if a case failed that is not expected to, or passed that is.

BEGIN { FS = "|" }

FNR == NR {
	if (!/^#/ && ($1 == "*" || $1 == kernel))
		known[$2, $3] = $4
	next
}

{
	name = "interop." kernel "." $4 "." $1
	reason = known[$4, $1]
	n++
	if ($5 == "skip")
		print "ok " n " " name " # SKIP " $6
	else if ($5 == "failed" && reason != "")
		print "ok " n " " name " # SKIP known to fail: " reason
	else if ($5 == "failed")
		print "not ok " n " " name " # " $6
	else if (reason != "")
		print "not ok " n " " name " # passes, though expected to fail: " reason
	else
		print "ok " n " " name
	if (($5 == "failed") != (reason != ""))
		bad = 1
	if (!($2 in seen)) {
		seen[$2] = 1
		order[++programs] = $2
	}
	cases[$2, $4]++
	if ($5 == "ok")
		passed[$2, $4]++
}

function cell(program, library) {
	if (!cases[program, library])
		return "not run"
	return passed[program, library] + 0 " of " cases[program, library] " cases"
}

END {
	print "# " kernel ": program | system | rdma_post"
	for (i = 1; i <= programs; i++)
		print "# " kernel ": " order[i] " | " cell(order[i], "system") \
			" | " cell(order[i], "rdma_post")
	exit bad
}
