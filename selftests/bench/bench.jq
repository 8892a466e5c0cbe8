# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the benchmark's scripts make of the lines that guest.sh writes, and what the documents
# show of Documentation/performance/results.json. lib.sh has bench_jq, which evaluates one of
# these functions. "E as $x | F" gives F the same input as E: in the tables of the documents that
# is always the whole of results.json.

def columns: {s: "system", o: "ours", f: "floor"};

def sorted: to_entries | sort_by(.key) | from_entries;

def quantile($q):
  sort | ((length - 1) * $q) as $at | ($at | floor) as $i
  | .[$i] + (if $at > $i then (.[$i + 1] - .[$i]) * ($at - $i) else 0 end);

def median: quantile(0.5);

# Four digits of a number
def short:
  if . == 0 then 0
  else pow(10; log10 | floor - 3 | fabs) as $unit
    | if . < 1e4 then (. * $unit | round) / $unit else (. / $unit | round) * $unit end
  end;

def fixed($digits):
  pow(10; $digits) as $unit | (. * $unit | round)
  | "\(. / $unit | floor).\(. % $unit + $unit | tostring[1:])";

def thousands: tostring | if length > 3 then "\(.[:-3] | thousands),\(.[-3:])" else . end;

# JSON with a line for each member of so many levels, so that a change is one of a line
def lines($levels; $indent):
  if type == "array" then "[\(map(lines(0; "")) | join(", "))]"
  elif type != "object" then tojson
  else [to_entries[] | "\(.key | tojson): \(.value | lines($levels - 1; $indent + " "))"]
    | if $levels > 0 then "{\n\(map($indent + .) | join(",\n"))\n\($indent[1:])}"
      else "{\(join(", "))}" end
  end;
def lines($levels): lines($levels; " ");

# A table of reStructuredText from rows of cells; so many columns are to the left.
def table($left):
  (transpose | map(map(length) | max)) as $widths
  | ($widths | map("=" * .) | join("  ")) as $rule
  | map(to_entries | map($widths[.key] as $width | (" " * ($width - (.value | length))) as $gap
                         | if .key < $left then .value + $gap else $gap + .value end)
        | join("  ") | sub(" +$"; ""))
  | [$rule, .[0], $rule, .[1:][], $rule] | join("\n");

# Rows of icount.sh: name, columns, the kernel's own column, arguments of bench
def cases($list):
  $list | scan("(\\S+) (\\S+) (\\S+) (.+)") | . as [$name, $columns, $other, $line]
  | {$name, columns: ($columns | split("") | map(columns[.])), $other, $line};

# The figures of a restart; other cases have one.
def restart:
  {" end": "down_p50", " first": "p50", " last": "p999", " kernel": "kernel_bytes",
   " programs": "program_bytes"};

# For each case and column the median of the guests, and the largest distance of one from it;
# what was not counted in each guest is left out.
def counts($list; $guests):
  [inputs | select(.result) | .result.p50 //= .result.mean] as $results
  | [cases($list) | . as {$name, $columns, $line} | $columns[] as $column
     | (if $line | startswith("restart") then restart else {"": "p50"} end | to_entries[])
       as {key: $suffix, value: $figure}
     | [$results[] | select(.line == $line and .column == $column)
        | .result[$figure] // 0 | select(. > 0)]
     | select(length == $guests)
     | (median | floor) as $median
     | {key: ($name + $suffix), $column, count: [$median, (map(. - $median | fabs) | max | ceil)]}]
  | reduce .[] as $in ({}; .[$in.key][$in.column] = $in.count)
  | sorted;

# Whether each count is as the baseline has it. Inputs: the counts, the baseline.
#
# Another build of the kernel than the baseline's may take more or fewer instructions itself.
# The loop in the kernel (or the system's calls) shows this difference, which is added to the
# expected number. 3 % more is allowed, or as much as equal guests have differed by; on 6.1,
# where they do not differ, only 3 %.
def verdicts($kernel; $list):
  input as $counts | input as $baseline
  | cases($list) | . as {$name, $columns, $other}
  | ($counts[$name] // {}) as $now | $baseline["\($kernel) \($name)"] as $base
  | (if all($columns[]; $now[.] and $base[.]) | not then null
     elif $other == "none" then $base.ours
     else [$base.ours[0] + $now[$other][0] - $base[$other][0], $base.ours[1] + $base[$other][1]]
     end) as $want
  | ($want | if . then .[0] + ([.[0] * 0.03, if $kernel == "6.1" then 0 else .[1] end] | max)
             else . end) as $most
  | def count($column): $now[$column][0] // "not counted";
    (if $most and $now.ours[0] <= $most then "ok" else "not_ok" end)
    + " \($kernel).\($name) # \(count("ours")) instructions, expected "
    + (if $most then "\($want[0]) + \(($most / $want[0] - 1) * 100 | fixed(1)) %" else "none" end)
    + ([$columns[] | select(. != "ours") | ", \(.) \(count(.))"] | join(""));

# The baseline with these counts. Inputs: the counts, the baseline. Guests that once differed
# more may do so again: rxe's worker sleeps after an operation, or does not yet, and in some runs
# all guests are of one kind. So the largest distance that was ever seen stays.
def baseline($kernel; $list):
  input as $counts
  | [cases($list) | select(any(.columns[] as $column | $counts[.name][$column]; not)) | .name]
  | if length > 0 then "\($kernel): not counted: \(join(", "))\n" | halt_error(1) else input end
  | . as $old
  | with_entries(select(.key | startswith("\($kernel) ") | not))
    + ($counts | with_entries(.key |= "\($kernel) \(.)" | .key as $key | .value |= with_entries(
        .key as $column | .value[1] |= ([., $old[$key][$column][1]] | max))))
  | sorted;

# The figure that a case is about, and its unit in results.json
def figure:
  if test("count=1") then ["syscalls", "calls", 1]
  elif test("^rate .*size=[0-9]+[KM]") then ["bytes", "MB/s", 1e-6]
  elif test("^rate") then ["rate", "k/s", 1e-3]
  elif test("^memory") then ["kernel_bytes", "KiB", 1 / 1024]
  else ["p50", "us", 1e-3] end;

# For each case the medians, and the quartiles of the ratios within each round
def times:
  reduce inputs as $in ({}; .[$in.line][$in.column]["\($in.round)"] = ($in.result // {}))
  | with_entries(
      (.key | figure) as [$figure, $unit, $scale] | .value |= (
        def middle($name; $scale):
          [.[][$name] | values] | select(length > 0) | median * $scale | short;
        def ratios($other):
          [.ours // {} | to_entries[]
           | (.value[$figure] | values) / ($other[.key][$figure] | values | select(. != 0))]
          | select(length > 0) | [quantile(0.5, 0.25, 0.75) | short];
        # Pairs of a path and its value; what was not measured has no value.
        [(to_entries[] | .key as $column | .value
          | [[$column], middle($figure; $scale)],
            (("p99", "p999", "cpu", "down_p50") as $more | select($figure == "p50")
             | [[$more, $column], middle($more; 1e-3)])),
         (("system", "floor") as $other | [["to_\($other)"], ratios(.[$other] // {})])]
        | reduce (.[] | select(length == 2)) as [$path, $value] ({$unit}; setpath($path; $value))));

# The text of bench.sh
def times_table:
  def cell($column):
    ([.[$column] // "-", (.p99, .p999 | .[$column] | values)] | join("/"))
    + (.cpu[$column] | if . then ", CPU \(.)" else "" end);
  def ratio: if . then "\(.[0]) [\(.[1]) \(.[2])]" else "-" end;
  [["p50/p99/p99.9", "unit", columns[], "ours/system", "ours/floor"],
   (to_entries[] | .key as $line | .value
    | [$line, .unit, cell(columns[]), (.to_system, .to_floor | ratio)])]
  | table(2);

# What each program gets in kB/s, and the latency in us that 99 % do not exceed
def tenants:
  reduce (inputs as $who | input | ["\($who) \(.size)", [.size / .mean * 1e6, .p99 / 1e3]])
    as [$key, $got] ({}; .[$key] += [$got])
  | map_values(transpose | map(median | round)) | sorted;

# Thousands of instructions for a buffer, from lines of text that interop.sh -I -v has printed
def buffers:
  reduce (foreach inputs as $line (
      null;
      ($line | capture("\\b(?<program>fabric|ucx)_buffers").program) // .;
      . as $program | $line
      | capture("cache: (?<cache>.*?): (?<op>send|put), (?<memory>mmap|malloc): "
                + "\\d+ buffers, (?<us>\\d+) us")
      | ["\($program), \(.op), \(.memory)", .cache, (.us | tonumber)]))
    as [$key, $cache, $us] ({}; .[$key][$cache] = $us);

# Requests in a second over both libraries, from lines of text that interop.sh -I -v has printed
def valkey:
  {valkey_1: "1 client", valkey_20: "20 clients", valkey_pipeline: "20 clients, by 16"} as $cases
  | reduce (foreach inputs as $line (
      null;
      ($line | capture("^# --- (?<library>\\S+) (?<case>\\S+): client") // null) // .;
      . as $run | $line | capture("\"(?<op>[SG]ET)\",\"(?<rate>[0-9.]+)\"")
      | ["\(.op), \($cases[$run.case])", {system: "system", rdma_post: "ours"}[$run.library],
         (.rate | tonumber)]))
    as [$key, $column, $rate] ({}; .[$key][$column] = $rate);

# results.json with this run. Inputs: results.json, the run's cases.
def put($run; $about):
  input as $runs | input as $cases | $runs + {($run): ($about + {$cases})} | sorted;

# The input of all that follows is results.json.

# Kernels with a run of this kind
def kernels($kind): . as $runs | ["6.1", "6.12", "7.2"] | map(select($runs["\($kind) \(.)"]));

def run($kind; $kernel): .["\($kind) \($kernel)"].cases;

def count($kernel; $column; $name): run("counts"; $kernel)[$name][$column][0];

# Kernels for which one of these cases was counted
def counted(names):
  [kernels("counts")[] as $kernel | select(any(count($kernel; columns[]; names); .)) | $kernel];

def number($kernel; $column; $name):
  count($kernel; $column; $name) | if . then thousands else "-" end;

# The ratio of ours to another column
def over($kernel; $other; $name):
  [count($kernel; "ours", $other; $name)] | if all then .[0] / .[1] | fixed(2) else "-" end;

# Of which commits the figures of these kernels are, in lines of up to 100 columns
def source($kind; $kernels):
  def many($what): if . == "1" then ", one \($what)" elif . then ", \(.) \($what)s" else "" end;
  def how: (.guests | many("guest")) + (.rounds | many("round"));
  reduce ($kernels[] as $kernel | .["\($kind) \($kernel)"] | .kernel //= $kernel) as $run ({};
    .[$run | [.commit, .date, how] | tojson] += [$run.kernel])
  | [to_entries[] | (.key | fromjson) as [$commit, $date, $how]
     | "at commit \($commit) on \($date), Linux \(.value | join(", "))\($how)"]
  | "Measured \(join("; "))."
  | reduce split(" ")[] as $word ("";
      if . == "" then $word
      elif (split("\n")[-1] + " " + $word | length) > 100 then "\(.)\n\($word)"
      else "\(.) \($word)" end);

# A table for replace.awk
def block($name; $kind; $kernels; rows):
  ".. begin \($name)", "", ([rows] | table(1)), "", source($kind; $kernels), "", ".. end \($name)";

def doc_counts:
  {
    "write": "write", "send": "send", "read": "read", "write, 16 in a call": "batch",
    "write, 1,000 connections": "write-1000", "request and answer": "echo",
    "the same, 16 connections": "echo-16", "connect": "connect",
    "register, 4 KiB": "register-4K", "register, 1 MiB": "register-1M",
    "again, 4 KiB": "again-4K", "again, 1 MiB": "again-1M"
  } as $cases
  | counted($cases[]) as $kernels
  | block("counts"; "counts"; $kernels;
      ["instructions", $kernels[]],
      (($cases | to_entries[]) as {key: $what, value: $name}
       | [$what, ($kernels[] as $kernel
          | [("system", "floor") as $other | select(count($kernel; $other; $name))
             | over($kernel; $other; $name)] as $ratios
          | "\(number($kernel; "ours"; $name)) (\($ratios | join(", ")))")]));

# What is beyond the loop in the kernel, on a device that has done the work when the post returns
def doc_inline:
  {"write": "write", "write, 16 in a call": "batch", "request and answer": "echo"} as $cases
  | kernels("inline") as $kernels
  | block("inline"; "inline"; $kernels;
      ["instructions", ($kernels[] | ., "loop", "beyond the loop")],
      (($cases | to_entries[]) as {key: $what, value: $name}
       | [$what, (run("inline"; $kernels[])[$name] | [.ours[0], .floor[0], .ours[0] - .floor[0]]
          | .[] | thousands)]));

def doc_valkey:
  kernels("valkey") as $kernels
  | block("valkey"; "valkey"; $kernels;
      ["requests in a second", "\($kernels[]), system / ours"],
      (run("valkey"; $kernels[0]) | keys[]) as $what
      | [$what, (run("valkey"; $kernels[])[$what]
         | "\(.system | round | thousands) / \(.ours | round | thousands) (\(.ours / .system | fixed(2)))")]);

def timed:
  {
    "write, polled": "latency op=write size=64 mode=poll",
    "send, polled": "latency op=send size=64 mode=poll",
    "read, polled": "latency op=read size=64 mode=poll",
    "write, sleeping": "latency op=write size=64 mode=sleep",
    "send, sleeping": "latency op=send size=64 mode=sleep",
    "read, sleeping": "latency op=read size=64 mode=sleep",
    "echo, polled": "echo op=send size=64 mode=poll",
    "echo, sleeping": "echo op=send size=64 mode=sleep",
    "echo of 16, polled": "echo op=send size=64 mode=poll conns=16",
    "echo of 16, sleeping": "echo op=send size=64 mode=sleep conns=16",
    "rate, by 16": "rate op=write size=64 depth=64 batch=16",
    "rate, 4 threads": "rate op=write size=64 depth=64 batch=16 conns=4 threads=4",
    "bandwidth, 64 KiB": "rate op=write size=64K depth=16",
    "bandwidth, 1 MiB": "rate op=write size=1M depth=16",
    "connect": "connect api=ep",
    "register, 4 KiB": "register size=4K",
    "register, 1 MiB": "register size=1M",
    "1,000 connections": "latency op=write size=64 mode=poll conns=1000",
    "memory of a connection": "memory what=conn conns=1000 depth=64",
    "calls, write, polled": "latency op=write size=64 mode=poll count=1 ops=1000",
    "calls, write, sleeping": "latency op=write size=64 mode=sleep count=1 ops=1000",
    "calls, by 16": "rate op=write size=64 depth=64 batch=16 count=1 ops=16000"
  };

def doc_times:
  kernels("times") as $kernels
  | block("times"; "times"; $kernels;
      ["what", $kernels[]],
      ((timed | to_entries[]) as {key: $what, value: $line}
       | [$what, (run("times"; $kernels[])[$line]
          | if . then [.to_system, .to_floor | values | .[0] | fixed(2)] as $ratios
              | "\(.ours) \(.unit) (\($ratios | join(", ")))"
            else "" end)]));

def doc_requests:
  counted("echo", "echo-16", "echo-256") as $kernels
  | block("requests"; "counts"; $kernels;
      ["kernel, connections", "system", "ours", "loop", "over system", "over loop"],
      ($kernels[] as $kernel | ({"1": "echo", "16": "echo-16", "256": "echo-256"} | to_entries[])
         as {key: $connections, value: $name}
       | ["\($kernel), \($connections)", number($kernel; columns[]; $name),
          over($kernel; "system", "floor"; $name)]));

# Both libraries for each kernel, and ours over the system's
def compared($table; $first; $cases):
  counted($cases[]) as $kernels
  | block($table; "counts"; $kernels;
      [$first, "\($kernels[]), system / ours"],
      (($cases | to_entries[]) as {key: $what, value: $name}
       | [$what, ($kernels[] as $kernel | [number($kernel; "system", "ours"; $name)]
                  + [over($kernel; "system"; $name)] | "\(.[0]) / \(.[1]) (\(.[2]))")]));

def doc_kept:
  compared("kept"; "kept"; {"nothing": "connect", "completion queues": "connect-cqs",
                            "queue pairs": "connect-own"});

def doc_connections:
  compared("connections"; "connections"; {
    "1": "connect-1", "100 at once": "connect-100", "100 in turn": "connect-100-turn",
    "1,000 at once": "connect-1000", "1,000 in turn": "connect-1000-turn"});

def doc_restart:
  {end: 1e6, first: 1e6, last: 1e6, kernel: 1024, programs: 1024} as $units
  | counted("restart-100 first", "restart-1000 first") as $kernels
  | block("restart"; "counts"; $kernels;
      ["kernel, clients", "end, ms", "median first byte, ms", "last first byte, ms",
       "kernel, KiB", "programs, KiB"],
      ($kernels[] as $kernel | ("100", "1000") as $clients
       | select(count($kernel; "ours"; "restart-\($clients) first"))
       | ["\($kernel), \($clients | thousands)",
          (($units | to_entries[]) as {key: $figure, value: $unit}
           | [count($kernel; "system", "ours"; "restart-\($clients) \($figure)")]
           | if all and ($unit == 1e6 or $clients == "1000")
             then map(. / $unit | if . < 10 then fixed(1) else round end) | join(" / ")
             else "" end)]));

def doc_any_memory:
  counted("send-64K", "any-64K") as $kernels
  | block("any_memory"; "counts"; $kernels;
      ["instructions", $kernels[]],
      (({"registered": "send-64K", "not registered": "any-64K",
         "to register and deregister 4 KiB": "register-4K"} | to_entries[])
         as {key: $what, value: $name}
       | [$what, number($kernels[]; "ours"; $name)]));

def doc_again:
  compared("again"; "instructions"; {
    "4 KiB, with remote access": "register-4K", "4 KiB, kept": "again-4K",
    "1 MiB, with remote access": "register-1M", "1 MiB, kept": "again-1M"});

def doc_buffers:
  kernels("buffers") as $kernels
  | block("buffers"; "buffers"; $kernels;
      ["kernel, library, memory", "library's", "no cache", "module's",
       "library's / none", "module's / none"],
      ($kernels[] as $kernel | run("buffers"; $kernel) | to_entries[] | .key as $what | .value
       | ["\($kernel), \($what)",
          (.["the library's", "none", "the module's"] // "-" | thousands),
          ((.["the library's"], .["the module's"]) / .none | fixed(3))]));

def doc_tenants:
  kernels("tenants") as $kernels
  | block("tenants"; "tenants"; $kernels;
      ["kernel", "with 1 MB/s", "with 3 MB/s", "third, alone", "99 %, us", "third, beside",
       "99 %, us"],
      ($kernels[] as $kernel | run("tenants"; $kernel)
       | [$kernel, (.["1M 65536", "3M 65536"][0], .["alone 65536", "beside 65536"][]
                    | thousands)]));

# The tables of a document
def docs($document):
  if $document == "performance" then doc_counts, doc_inline, doc_valkey, doc_times
  elif $document == "requests" then doc_requests
  elif $document == "connections" then doc_kept, doc_connections, doc_restart
  elif $document == "any-memory" then doc_any_memory
  elif $document == "registration-cache" then doc_buffers, doc_again
  else doc_tenants end;

# A script for gnuplot, with curves in colours that colour-blind readers can tell apart
def gnuplot($size; settings; curves):
  [curves] as $curves
  | "set terminal svg size \($size) font 'sans,12' background 'white' noenhanced",
    "set grid ytics", "set border 3", "set tics nomirror",
    "set style line 1 lc rgb '#777777' lw 2 pt 5 ps 0.6",
    "set style line 2 lc rgb '#0072b2' lw 2 pt 7 ps 0.7",
    "set style line 3 lc rgb '#d55e00' lw 2 pt 9 ps 0.7",
    settings,
    ($curves | to_entries[] | "$curve\(.key) << E", (.value.points[] | join(" ")), "E"),
    "plot \([$curves | to_entries[] | .key as $i | .value
             | "$curve\($i) with \(.with) ls \($i + 1) title '\(.title)'"] | join(", "))";

def plot_ratios:
  kernels("times") as $kernels
  | [(timed | to_entries[]) as {key: $what, value: $line}
     | select($what | startswith("calls") | not)
     # Of a rate it is the inverse.
     | [run("times"; $kernels[])[$line].to_system
        | if . and ($line | startswith("rate")) then [1 / .[0, 2, 1]] else . end]
     | select(any) | {$what, ratios: .}] as $cases
  | gnuplot("800,420";
      "set ylabel 'time, system = 1'", "set yrange [0:2.4]", "set key top right",
      "set xtics rotate by -40 left (\(
        [$cases | to_entries[] | "'\(.value.what)' \(.key)"] | join(", ")))",
      "set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#333333'";
      ($kernels | to_entries[]) as {key: $i, value: $kernel}
      | {title: "Linux \($kernel)", with: "yerrorbars",
         points: [$cases | to_entries[] | .key as $x | .value.ratios[$i] | values
                  | [$x + ($i - 1) * 0.22, .[]]]});

# Instructions on 6.1 over x
def plot_counts(cases; settings):
  gnuplot("400,340"; "set logscale x 2", settings;
    ({system: "system", ours: "librdma_post", floor: "loop in the kernel"} | to_entries[])
      as {key: $column, value: $title}
    | {$title, with: "linespoints",
       points: [(cases | to_entries[]) as {key: $x, value: $case}
                | count("6.1"; $column; $case) | values | [$x, .]]});

def plot_instructions_size:
  plot_counts(
    {"64": "write", "256": "write-256", "1024": "write-1K", "4096": "write-4K",
     "16384": "write-16K", "65536": "write-64K"};
    "set logscale y", "set key bottom right", "set ylabel 'instructions for a write'",
    "set xlabel 'message size in bytes'");

def plot_instructions_batch:
  plot_counts(
    {"1": "batch-1", "2": "batch-2", "4": "batch-4", "8": "batch-8", "16": "batch",
     "32": "batch-32", "64": "batch-64"};
    "set yrange [0:]", "set key bottom left", "set ylabel 'instructions for each'",
    "set xlabel 'work requests in a call'");
