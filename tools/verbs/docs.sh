# ./run docs --screenshots [DIR]: trains a small net and writes pictures of what people see (docs/screenshots unless DIR
# is given): the report at 1280 and 390 pixels, light and dark, the progress bar in a terminal, and what ./run gan drew
# (after a short training where it was not run yet).
# ./run docs --parity: runs the tests that tests/parity.txt names, and writes docs/parity.md.
set -euo pipefail
. tools/lib.sh

screenshots() { # DIR
  local out=$1 work=build/release/screenshots
  need $packages_build $packages_test $packages_docs
  build release levin_log_demo
  rm -rf "$work"
  mkdir -p "$work" "$out"
  say "training"
  # script gives the program a terminal, whose every byte it keeps
  COLUMNS=112 TERM=xterm-256color LC_ALL=C.UTF-8 script -qfec \
    "stty cols 112 rows 30; build/release/bin/levin_log_demo $work/full 300" "$work/terminal.txt" >/dev/null
  build/release/bin/levin_log_demo "$work/running" 20 stop >/dev/null
  build/release/bin/levin_log_demo "$work/empty" 0 >/dev/null
  local gan=runs/gan
  if [ ! -f "$gan/report.html" ]; then
    gan=$work/gan
    bash tools/verbs/gan.sh --max-epochs 2 --limit-train-batches 200 --default-root-dir "$gan" >/dev/null
  fi
  say "taking pictures"
  python3 tools/screenshots.py "$work" "$gan" "$out"
}

parity() {
  local preset
  need $packages_build $packages_test $packages_docs
  for preset in release emulate; do
    build "$preset" $(python3 tools/parity.py --programs "$preset")
  done
  build release levin_log_demo
  say "running the tests that rows name"
  python3 tools/parity.py || fail "docs/parity.md was not written"
}

case ${1:-} in
  --screenshots) screenshots "${2:-docs/screenshots}" ;;
  --parity) parity ;;
  *) usage_error "docs knows --screenshots [DIR] and --parity" ;;
esac
