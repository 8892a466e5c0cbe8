# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# awk -v title=T -v new=FILE -f replace.awk program-cases.rst: prints the document
# with the results of T replaced by FILE.

/^\.\. end of results/ { skipping = 0 }
!skipping { print }
$0 == ".. results of " title {
	skipping = 1
	while ((getline line < new) > 0)
		print line
}
