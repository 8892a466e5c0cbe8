# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# results.json as tab-separated lines: first those that have a target, with what
# it is and whether it was met, then the other cases.
# Wants $targets, slurped, and $first: whether rxe has tasklets (6.1).

def round($digits): if . == null then "-" else
    (if $digits == 0 then 1 elif $digits == 1 then 10 elif $digits == 2 then 100
     else 1000 end) as $unit
    | (. * $unit | . + 0.5 | floor | . / $unit | tostring) end;

def human($figure):
  if . == null then "-"
  elif $figure == "rate" then (. / 1e3 | round(2)) + " k/s"
  elif $figure == "bytes" then (. / 1e6 | round(1)) + " MB/s"
  elif $figure == "kernel_bytes" then (. / 1024 | round(1)) + " KiB"
  elif $figure == "syscalls" then round(3)
  elif . >= 1e6 then (. / 1e6 | round(2)) + " ms"
  else (. / 1e3 | round(2)) + " us" end;

def ratio: if . == null then "-" else
  "\(.median | round(3)) [\(.q1 | round(3)) \(.q3 | round(3))]" end;

def column($name): .figure as $figure | .columns[$name][$figure].median;

def values: .figure as $figure
  | [column("system", "ours", "floor") | human($figure)]
  + [(.to_system | ratio), (.to_floor | ratio)];

def pick: if type == "array" then (if $first then .[0] else .[1] end) else . end;

# "met" if it is, "NOT MET" if not, nothing without a target or a value.
def verdict($value; $target; $low):
  if $target == null then []
  elif $value == null then ["not measured"]
  elif (if $low then $value <= $target else $value >= $target end) then ["met"]
  else ["NOT MET"] end;

def bound($target; $low; $of):
  if $target == null then []
  else ["\(if $low then "<=" else ">=" end) \($target) \($of)"] end;

. as $results
| (INDEX(.line)) as $by_line
| $targets[0] as $targets
| (["what", "system", "ours", "floor", "ours/system", "ours/floor", "target", "result"]),
  ($targets[] | . as $t | $by_line[.line] | select(.) | . as $r
   | (.figure | . != "rate" and . != "bytes") as $low
   | ($t.system | pick) as $s | ($t.floor | pick) as $f
   | (if $t.against and $by_line[$t.against]
      then ($r | column("ours")) / ($by_line[$t.against] | column("ours"))
      else null end) as $against
   | [$t.what] + values
     + [(bound($s; $low; "system") + bound($f; $low; "floor")
         + bound($t.ours; true; "ours") + bound($t.ratio; true; "against 1"))
        | join(", ")]
     + [(verdict($r.to_system.median; $s; $low)
         + verdict($r.to_floor.median; $f; $low)
         + verdict($r | column("ours"); $t.ours; true)
         + (verdict($against; $t.ratio; true)
            | map(. + " (\($against | round(3)))")))
        | join(", ")]),
  ($results[] | select(.line as $line | $targets | all(.line != $line))
   | [.line] + values + ["", ""])
| @tsv
