# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Turns results.json into tab-separated lines: first the cases with a target,
# and whether it was met, then the other cases. A latency is shown as
# p50/p99/p99.9, and the program's CPU time for an operation; a restart as the
# clients' p50/p99/p99.9, the time until the server listens again, and the kernel's
# memory of a connection. Needs $kernel, $targets and, slurped, $icount, if
# instructions were counted.

def round($digits): if . == null then "-" else
    (if $digits == 0 then 1 elif $digits == 1 then 10 elif $digits == 2 then 100
     else 1000 end) as $unit
    | (. * $unit | . + 0.5 | floor | . / $unit | tostring) end;

# Times in ns.
def times: if max >= 1e6 then (map(. / 1e6 | round(2)) | join("/")) + " ms"
  else (map(. / 1e3 | round(2)) | join("/")) + " us" end;

def human($figure):
  if . == null then "-"
  elif $figure == "rate" then (. / 1e3 | round(2)) + " k/s"
  elif $figure == "bytes" then (. / 1e6 | round(1)) + " MB/s"
  elif $figure == "kernel_bytes" then (. / 1024 | round(1)) + " KiB"
  elif $figure == "syscalls" then round(3)
  else [.] | times end;

def ratio: if . == null then "-" else
  "\(.median | round(3)) [\(.q1 | round(3)) \(.q3 | round(3))]" end;

def column($name): (.figure // "") as $figure | (.columns[$name] // {})[$figure].median;

def cell($name): .columns[$name] as $column
  | if .figure == "p50" and (.line | test("^(latency|echo)")) and $column.p999
    then ([$column | .p50, .p99, .p999 | .median] | times)
      + (if $column.cpu then ", CPU " + ([$column.cpu.median] | times) else "" end)
    elif (.line | test("^restart")) and $column.p999
    then ([$column | .p50, .p99, .p999 | .median] | times)
      + ", end " + ([$column.down_p50.median] | times)
      + (if $column.kernel_bytes then
           ", \($column.kernel_bytes.median | human("kernel_bytes"))" else "" end)
    else .figure as $figure | column($name) | human($figure) end;

def values: [cell("system", "ours", "floor")]
  + [(.to_system | ratio), (.to_floor | ratio)];

# A target is a value for all kernels, or a list: for 6.1, where rxe has
# tasklets, and for the others.
def pick: if type == "array" then (if $kernel | test("6\\.1$") then .[0] else .[1] end)
  else . end;

# "met" or "NOT MET", or nothing without a target.
def verdict($value; $target; $low):
  if $target == null then []
  elif $value == null then ["not measured"]
  elif (if $low then $value <= $target else $value >= $target end) then ["met"]
  else ["NOT MET"] end;

# The same for the ratio of a figure to the one with one connection, with the
# ratio.
def verdict_against($against; $target): verdict($against; $target; true)
  | map(. + (if $against then " (\($against | round(3)))" else "" end));

def bound($target; $low; $of):
  if $target == null then []
  else ["\(if $low then "<=" else ">=" end) \($target) \($of)"] end;

# A line for a target of instructions, which icount.sh has counted. The system's
# column may be that of another case.
def counted($t):
  (($t.beside // $t.icount) as $beside
   | {system: $beside, ours: $t.icount, floor: $t.icount}) as $case
  | ["system", "ours", "floor"]
  | map($icount[0]["\($kernel) \(.) \($case[.])"].median) as [$system, $ours, $floor]
  | (if $ours and $system then $ours / $system else null end) as $to_system
  | (if $ours and $floor then $ours / $floor else null end) as $to_floor
  | ($icount[0]["\($kernel) ours \($t.against)"].median) as $one
  | (if $ours and $one then $ours / $one else null end) as $against
  | [$t.what]
    + ([$system, $ours, $floor] | map(. // "-" | tostring))
    + ([$to_system, $to_floor] | map(round(3)))
    + [bound($t.system | pick; true; "system") + bound($t.floor | pick; true; "floor")
       + bound($t.ratio; true; "against 1")
       | join(", ")]
    + [verdict($to_system; $t.system | pick; true)
       + verdict($to_floor; $t.floor | pick; true)
       + verdict_against($against; $t.ratio)
       | join(", ")];

. as $results
| (INDEX(.line)) as $by_line
| (["what (latency: p50/p99/p99.9, CPU time)", "system", "ours", "floor", "ours/system", "ours/floor", "target", "result"]),
  ($targets[] | select(.icount | not) | . as $t
   | ($by_line[.line] // {}) as $r
   | ($t.line | test("^rate") and (test("count=1") | not) | not) as $low
   | ($t.system | pick) as $s | ($t.floor | pick) as $f
   | ($r | column("ours")) as $ours
   | (($by_line[.against // ""] // {}) | column("ours")) as $one
   | (if $ours and $one then $ours / $one else null end) as $against
   | [$t.what]
     + (if $by_line[.line] then $r | values else ["-", "-", "-", "-", "-"] end)
     + [(bound($s; $low; "system") + bound($f; $low; "floor")
         + bound($t.ours | pick; true; "ours") + bound($t.ratio; true; "against 1"))
        | join(", ")]
     + [(verdict($r.to_system.median; $s; $low)
         + verdict($r.to_floor.median; $f; $low)
         + verdict(if $by_line[$t.line] then $r | column("ours") else null end;
                   $t.ours | pick; true)
         + verdict_against($against; $t.ratio))
        | join(", ")]),
  ($targets[] | select(.icount) | counted(.)),
  ($results[] | select(.line as $line | $targets | all(.line != $line))
   | [.line] + values + ["-", "-"])
| @tsv
