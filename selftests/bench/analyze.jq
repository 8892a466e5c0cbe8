# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Turns the lines of guest.sh, slurped, into one object for each case: its
# figures over each column, and the ratios of ours to the others, round by
# round.

def quantile($q):
  sort as $v | ((($v | length) - 1) * $q) as $at | ($at | floor) as $i
  | $v[$i] + (if $at > $i then ($v[$i + 1] - $v[$i]) * ($at - $i) else 0 end);

def spread:
  map(select(. != null))
  | if length == 0 then null
    else { n: length, median: quantile(0.5), q1: quantile(0.25), q3: quantile(0.75) }
    end;

def figure:
  if test("count=1") then "syscalls"
  elif test("^rate .*size=[0-9]+[KM]") then "bytes"
  elif test("^rate") then "rate"
  elif test("^memory") then "kernel_bytes"
  else "p50" end;

def ratios($rounds; $name; $other):
  $rounds | map(select(.ours[$name] and (.[$other][$name] // 0) != 0)
                | .ours[$name] / .[$other][$name]) | spread;

# The names of figures; other numbers of a result are parameters of the case.
def figures: ["p50", "p99", "p999", "min", "mean", "rate", "bytes", "down_p50",
  "down_p99", "dereg_p50", "syscalls", "cpu", "kernel_bytes", "program_bytes",
  "retries", "silent"];

to_entries
| group_by(.value.line) | sort_by(map(.key) | min)
| map(
  map(.value) as $all
  | $all[0].line as $line | ($line | figure) as $figure
  | ($all | group_by(.round)
     | map(map({ key: .column, value: .result }) | from_entries)) as $rounds
  | {
      line: $line, figure: $figure,
      columns: ([$all[].column] | unique | map(. as $column | {
        key: $column,
        value: (figures | map(. as $name | {
            key: $name,
            value: ([$rounds[][$column][$name]?] | spread)
          } | select(.value)) | from_entries)
      }) | from_entries),
      values: ([$all[].column] | unique | map(. as $column | {
        key: $column, value: [$rounds[][$column][$figure]?]
      }) | from_entries),
      to_system: ratios($rounds; $figure; "system"),
      to_floor: ratios($rounds; $figure; "floor")
    })
