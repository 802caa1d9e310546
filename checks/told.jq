# What `go test -json` says, as people want to read it: what packages say, what
# failed tests said, which tests were skipped, and why, and which took half a
# minute or more.
# usage: go test -json … | jq --raw-input --raw-output --null-input --join-output --from-file told.jq

def said($of): [$of[] | select(test("^=== |^ *--- (PASS|SKIP)") | not)] | join("");

foreach (inputs | (fromjson? // {Action: "output", Output: (. + "\n")})) as $e (
  {tests: {}, told: ""};
  ([$e.Package, $e.Test] | map(. // "") | join(" ")) as $key
  | .told = ""
  | if $e.Action == "output" and $e.Test then .tests[$key] += [$e.Output]
    elif $e.Action == "output" or $e.Action == "build-output" then .told = (if $e.Output == "PASS\n" then "" else $e.Output end)
    elif $e.Action == "fail" then
      # a package that was ended leaves tests that never did
      (if $e.Test then [$key] else [.tests | keys[] | select(startswith($e.Package + " "))] end) as $ended
      | .told = ([.tests[$ended[]] // []] | map(said(.)) | join(""))
      | reduce $ended[] as $k (.; del(.tests[$k]))
    elif $e.Action == "skip" and $e.Test then .told = "skip  \($e.Test): " + (said(.tests[$key] // []) | ltrimstr("    ")) | del(.tests[$key])
    elif $e.Test and ($e.Action == "pass") then
      (if $e.Elapsed >= 30 and ($e.Test | contains("/") | not) then .told = "slow  \($e.Test): \($e.Elapsed) s\n" else . end)
      | del(.tests[$key])
    else . end;
  .told
)
