# Reads logs with other programs: the report in headless Chromium at desktop and phone widths, event files with
# TensorBoard.
. tests/scripts/lib.sh
(. tools/lib.sh; need $packages_docs) || { echo "SKIP: network"; exit 0; }
demo=$build/bin/levin_log_demo
work=$build/logs
rm -rf "$work"

"$demo" "$work/full" 300 >"$work.txt"
"$demo" "$work/running" 20 stop >>"$work.txt"
"$demo" "$work/empty" 0 >>"$work.txt"
grep -q $'\r' "$work.txt" && fail "output into a file holds carriage returns"
"$build/bin/mnist" --model mlp --max-epochs 2 --limit-train-batches 100 --limit-val-batches 4 --limit-test-batches 8 \
  --default-root-dir "$work/mnist" >>"$work.txt"
python3 tests/look/check_report.py "$work"/{full,running,empty,mnist}/report.html

venv=build/tools/venv
if ! "$venv/bin/python" -c 'import tensorboard' 2>/dev/null; then
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet tensorboard || { echo "SKIP: network"; exit 0; }
fi
"$venv/bin/python" tests/look/check_tensorboard.py "$work/full" 300 2>/dev/null
"$demo" "$work/full" 100 continue
"$venv/bin/python" tests/look/check_tensorboard.py "$work/full" 300 100 2>/dev/null
