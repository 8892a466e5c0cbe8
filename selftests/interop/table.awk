# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# awk -v suite=S -v kernel=K -f table.awk expected results: prints the results as a table
# in reStructuredText.

BEGIN { FS = "|" }

FNR == NR {
	if (!/^#/ && ($1 == "*" || $1 == suite) && ($2 == "*" || $2 == kernel))
		known[$3, $4] = $5
	next
}

{
	if (!($1 in program))
		order[++n] = $1
	program[$1] = $2
	what[$1] = $3
	result[$1, $4] = $5 == "ok" ? "works" : $5 == "failed" ? "fails" : $5
	why = $5 == "failed" ? known[$4, $1] : $5 == "skip" ? $6 : ""
	if (why != "" && index(remark[$1], why) == 0)
		remark[$1] = (remark[$1] == "" ? "" : remark[$1] "; ") why
}

function quote(text) {
	gsub(/"/, "\"\"", text)
	return "\"" text "\""
}

END {
	print ""
	print ".. csv-table::"
	print "   :header: Program, Case, System, rdma_post, Remark"
	print ""
	for (i = 1; i <= n; i++) {
		f = order[i]
		print "   " quote(program[f]) ", " quote(what[f]) ", " \
			result[f, "system"] ", " result[f, "rdma_post"] \
			(remark[f] == "" ? "," : ", " quote(remark[f]))
	}
	print ""
}
