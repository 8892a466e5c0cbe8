# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Turns the counts of one kernel into a line for each case of $list, counted or
# not: whether it takes as many instructions as expected, and their number.
# Needs $kernel, $list, and $baseline, slurped.
#
# Another build of the kernel than the baseline's may take more or fewer
# instructions itself. The loop in the kernel (or the system's calls) shows this
# difference, which is added to the expected number. 3 % more is allowed, or as
# much as equal guests have differed by; on 6.1, where they do not differ, only
# 3 %.

def count: if . == null then "not counted" else "\(.median)" end;

. as $now | $baseline[0] as $base
| $list | scan("(\\S+) (\\S+) (\\S+) .+") | . as [$name, $columns, $other]
| def of($counts; $column): $counts["\($kernel) \($column) \($name)"];
  [$columns | split("")[] | { s: "system", o: "ours", f: "floor" }[.]] as $names
| of($now; "ours").median as $value
| (if all($names[]; of($now; .) and of($base; .)) | not then null
   elif $other == "none" then of($base; "ours") | [.median, .spread]
   else [of($base; "ours").median + of($now; $other).median - of($base; $other).median,
         of($base; "ours").spread + of($base; $other).spread]
   end) as $base
| (if $base then $base[0] + ([$base[0] * 0.03, if $kernel == "6.1" then 0 else $base[1] end] | max)
   else null end) as $most
| (if $most and $value <= $most then "ok" else "not_ok" end)
  + " \($kernel).\($name) # \(of($now; "ours") | count) instructions, "
  + (if $most
     then "expected \($base[0]) + \(($most / $base[0] - 1) * 1000 + 0.5 | floor / 10) %"
     else "expected none" end)
  + ([$names[] | select(. != "ours") | ", \(.) \(of($now; .) | count)"] | add)
