# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Usage: awk -v to=map|rst|list|stubs|symver -f symbols.awk symbols.txt
#
# Prints the linker's version script, the documentation's table, a line
# SYMBOL@NODE for each symbol that the library exports, or those that only fail:
# stubs.h, those with a default version; symver.h, the others.

function fail(text) {
	print FILENAME ":" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

BEGIN {
	release["12"] = "12"
	release["13"] = "13"
	release["sid"] = "unstable"
	release["-"] = ""
	state["works"] = "works"
	state["partly"] = "partly"
	state["no"] = "no"
	way["errno"] = "errno"
	way["-1"] = "minus_one"
	way["NULL"] = "null"
	way["0"] = "0"
	way["flag"] = "flag"
	# The interface between libibverbs and its providers, by release.
	providers = split("34 57 59 64 65", provider)
}

function add_node(node) {
	if (node in members)
		return
	order[++nodes] = node
	members[node] = ""
}

/^(#|$)/ { next }

/^= / {
	titles++
	title[titles] = substr($0, 3)
	next
}

{
	if (!titles)
		fail("no section")
	if (!match($1, /@@?/))
		fail("no version: " $1)
	symbol = substr($1, 1, RSTART - 1)
	node = substr($1, RSTART + RLENGTH)
	part[2] = ""
	split($3, part, ":")
	how = way[part[1]]
	if (how != "" && ((part[2] ~ /^E[A-Z]+$/) != (part[1] ~ /^(errno|-1|NULL)$/) ||
			  node == "inline" || (part[1] == "flag" && $1 ~ /@@/) ||
			  (part[2] !~ /^(ENOSYS)?$/ && $1 !~ /@@/)))
		fail("it cannot fail so: " $1)
	if (!($2 in release) || !($3 in state || how != ""))
		fail("wrong release or state: " $1)
	if (seen[$1]++)
		fail("twice: " $1)
	remark = ""
	for (i = 4; i <= NF; i++)
		remark = remark (i > 4 ? " " : "") $i
	if ($3 == "partly" && remark == "")
		fail("partly, but what: " $1)

	if (node == "IBVERBS_PRIVATE_*") {
		for (i = 1; i <= providers; i++) {
			add_node("IBVERBS_PRIVATE_" provider[i])
			list = list symbol "@IBVERBS_PRIVATE_" provider[i] "\n"
			if (how != "")
				symver = symver fails(how, symbol, "\"IBVERBS_PRIVATE_" provider[i] "\"")
		}
	} else if (node != "inline") {
		add_node(node)
		list = list $1 "\n"
		if (how != "" && $1 ~ /@@/)
			stubs = stubs fails(how, symbol, how == "0" ? 0 : part[2])
		else if (how != "")
			symver = symver fails(how, symbol, "\"" node "\"")
	}
	if ($1 ~ /@@/)
		members[node] = members[node] "\t\t" symbol ";\n"

	answer = how != "" ? "no" : state[$3]
	if (remark != "")
		answer = answer ": " remark
	if (how != "" && part[2] != "" && $1 ~ /@@/)
		answer = answer ", " part[2]
	gsub(/"/, "\"\"", answer)
	row[titles] = row[titles] sprintf("   ``%s``,%s,%s,\"%s\"\n",
		symbol, node, release[$2], answer)
}

function fails(how, symbol, last) {
	if (to == "stubs")
		return "FAILS_" how "(" symbol ", " last ")\n"
	return "FAILS(" how ", " symbol ", " last ");\n"
}

function print_map(	i) {
	print "/* Made from symbols.txt. */"
	for (i = 1; i <= nodes; i++) {
		print order[i] " {"
		if (members[order[i]] != "")
			printf "\tglobal:\n%s", members[order[i]]
		# In a node with .symver versions it would hide those.
		if (order[i] ~ /^RDMA_POST/)
			print "\tlocal:\n\t\t*;"
		print "};"
	}
}

function underline(text) {
	gsub(/./, "=", text)
	return text
}

function print_rst(	i) {
	# In two parts, or reuse takes it for the licence of this file.
	print ".. SPDX-" "License-Identifier: GPL-2.0 OR BSD-2-Clause"
	print ".. Made from userlib/symbols.txt by \"make -C Documentation symbols\"."
	print ""
	print "======="
	print "Symbols"
	print "======="
	print ""
	print "The table lists each symbol of Debian's libibverbs and librdmacm, its version"
	print "node, the first Debian release that has it, and whether it works over"
	print "/dev/rdma_post. A function that does not work fails as its manual page says,"
	print "with ENOSYS, EOPNOTSUPP or the error named here: kernel verbs do not support"
	print "it, or it is not implemented (:doc:`kernel-verbs`)."
	print ""
	print "The library is built with the headers of rdma-core 44 (Debian 12) or later, and"
	print "runs programs that were built with those of 44 to 65 (unstable). ``rdma-post-run"
	print "PROGRAM`` runs a program that was linked with libibverbs and librdmacm."
	for (i = 1; i <= titles; i++) {
		print ""
		print title[i]
		print underline(title[i])
		print ""
		print ".. csv-table::"
		print "   :header: symbol, version, Debian, state"
		print "   :widths: 35, 20, 10, 35"
		print ""
		printf "%s", row[i]
	}
}

END {
	if (failed)
		exit 1
	if (to == "map")
		print_map()
	else if (to == "list")
		printf "%s", list
	else if (to == "stubs" || to == "symver")
		printf "/* Made from symbols.txt. */\n%s", to == "stubs" ? stubs : symver
	else
		print_rst()
}
