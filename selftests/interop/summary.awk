# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: awk -f summary.awk packages program-cases.rst
#
# Prints the table of programs.rst, for replace.awk, made from those of the cases: a row for
# each line of packages, a column for each release, and of Debian 12 for each kernel.

function fail(text) {
	print text > "/dev/stderr"
	failed = 1
	exit 1
}

BEGIN {
	columns = split("6.1 6.12 7.2 trixie sid", column)
	heading["6.1"] = "12, Linux 6.1"
	heading["6.12"] = "12, 6.12"
	heading["7.2"] = "12, 7.2"
	heading["trixie"] = "13"
	heading["sid"] = "sid"
}

FNR == 1 { file++ }

file == 1 && !/^#/ {
	split($0, field, "|")
	packages[++rows] = field[1]
	programs[rows] = field[2]
	n = split(field[2], names, " ")
	for (i = 1; i <= n; i++)
		known[names[i]]
}

file == 2 && /^\.\. begin results of / { at = $5 }

# A row of a case: "PROGRAM", "CASE", SYSTEM, RDMA_POST, and perhaps "REMARK"
file == 2 && /^   "/ {
	line = substr($0, 5)
	i = index(line, "\", \"")
	program = substr(line, 1, i - 1)
	if (!match(line, /", (works|fails|skip), (works|fails|skip),/))
		fail(FILENAME ":" FNR ": not a row of a case")
	if (!(program in known))
		fail(FILENAME ":" FNR ": packages does not have " program)
	if (!(at in heading))
		fail(FILENAME ":" FNR ": the summary has no column for " at)
	split(substr(line, RSTART + 3, RLENGTH - 4), result, ", ")
	tried[program]
	why = substr(line, RSTART + RLENGTH + 2)
	sub(/"$/, "", why)
	why = program ", " substr(line, i + 4, RSTART - i - 4) ": " why \
		(result[1] == result[2] ? " (the same over the system's libraries)" : "")
	if ((program, at, result[2]) in remark)
		why = remark[program, at, result[2]] "; " why
	remark[program, at, result[2]] = why
}

# A program of which no case works in this column runs as little as one of which a case fails.
function cell(row, at,    i, n, names, good, bad, result) {
	n = split(programs[row], names, " ")
	for (i = 1; i <= n; i++) {
		result = "fails"
		if ((names[i], at, "works") in remark)
			good = 1
		else if ((names[i], at, "skip") in remark)
			result = "skip"
		if (!((names[i], at, result) in remark))
			continue
		bad = 1
		if (index(remarks[row], remark[names[i], at, result]) == 0)
			remarks[row] = remarks[row] (remarks[row] == "" ? "" : "; ") \
				remark[names[i], at, result]
	}
	return good ? bad ? "works, but" : "works" : bad ? "does not run" : "not tried"
}

function table(    row, i, line) {
	print ".. begin summary\n\n.. csv-table::"
	print "   :widths: 22 12 7 7 7 7 7 31"
	line = "   :header: Programs, Packages"
	for (i = 1; i <= columns; i++)
		line = line ", \":ref:`" heading[column[i]] " <cases-" column[i] ">`\""
	print line ", Remark\n"
	for (row = 1; row <= rows; row++) {
		line = programs[row]
		gsub(/ /, ", ", line)
		line = "   \"" line "\", \"" packages[row] "\""
		for (i = 1; i <= columns; i++)
			line = line ", \"" cell(row, column[i]) "\""
		print line ", \"" remarks[row] "\""
	}
	print "\n.. end summary"
}

END {
	if (failed)
		exit 1
	for (program in known) {
		if (!(program in tried))
			fail("packages has " program ", of which there is no case")
	}
	table()
}
