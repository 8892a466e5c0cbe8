# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Turns the lines of guest.sh from $guests guests, slurped, into an object with
# the median of each case and column, and the largest distance of a guest from
# it. Leaves out a case that was not counted in each guest. Needs $kernel, and
# $list, which icount.sh creates.

def median: sort
  | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2 | floor;

. as $results
| [$list | scan("(\\S+) (\\S+) \\S+ (.+)") | . as [$name, $columns, $line]
   | ($columns | split(""))[]
   | { s: "system", o: "ours", f: "floor" }[.] as $column
   | [$results[] | select(.line == $line and .column == $column)
      | .result | .p50 // .mean | select(. != null and . > 0)]
   | select(length == $guests)
   | median as $median
   | {
       key: "\($kernel) \($column) \($name)",
       value: { median: $median, spread: (map(. - $median | fabs) | max | ceil) }
     }]
| from_entries
