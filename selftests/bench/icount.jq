# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Lines of guest.sh from $guests guests, slurped, become an object with the median
# of each case and column, and how far a guest was from it at most. What was not
# counted in each guest is left out.
# Wants $kernel, and $list, as icount.sh makes it.

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
