# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# awk -f replace.awk TABLES DOCUMENT: prints the document with what stands between its lines
# ".. begin NAME" and ".. end NAME" replaced by what stands there in TABLES, if that has NAME.

NR == FNR && /^\.\. begin / { name = $0; block[name] = ""; next }
NR == FNR && /^\.\. end / { name = ""; next }
NR == FNR {
	if (name != "")
		block[name] = block[name] $0 "\n"
	next
}
/^\.\. end / { skipping = 0 }
!skipping { print }
$0 in block {
	skipping = done[$0] = 1
	printf "%s", block[$0]
}
END {
	if (skipping) {
		print FILENAME ": a table has no end" > "/dev/stderr"
		exit 1
	}
	for (name in block)
		if (!(name in done)) {
			print FILENAME ": no place for " name > "/dev/stderr"
			exit 1
		}
}
