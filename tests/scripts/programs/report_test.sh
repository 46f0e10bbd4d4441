# ./run mnist writes a report next to its checkpoint and prints the report's path; with --logger none it writes none.
. tests/scripts/lib.sh
work=$build/report
rm -rf "$work"
short="--model mlp --max-epochs 1 --limit-train-batches 10 --limit-val-batches 1 --limit-test-batches 2"

./run mnist $short --default-root-dir "$work/with" >"$work.txt" 2>"$work.err" || fail "./run mnist: $(cat "$work.err")"
grep -qxF "report: $work/with/report.html" "$work.txt" || fail "the report's path is not printed: $(cat "$work.txt")"
grep -q '^result: ' <(tail -n 1 "$work.txt") || fail "the last line is no result: $(cat "$work.txt")"
for part in '"status":"success"' '"name":"test_acc"' '"matrices":[{' '"png":"' 'Ankle boot'; do
  grep -qF "$part" "$work/with/report.html" || fail "the report lacks $part"
done

./run mnist $short --default-root-dir "$work/without" --logger none >"$work.txt" 2>"$work.err" ||
  fail "./run mnist --logger none: $(cat "$work.err")"
! grep -q '^report: ' "$work.txt" || fail "a report's path is printed where none is written"
for file in report.html metrics.csv; do
  [ ! -e "$work/without/$file" ] || fail "--logger none wrote $file"
done
