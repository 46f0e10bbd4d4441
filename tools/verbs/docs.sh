# ./run docs --screenshots [DIR]: the pictures of the README, into docs/images: ./run mnist in a terminal, its report, and
# what ./run gan drew, which is run first where it was not run yet (a quarter of an hour on two cores). DIR gets pictures
# for checks of the layout: a report with everything in it at 1280 and 390 pixels, light and dark, and the progress bar
# (default: build/release/screenshots/all).
# ./run docs --parity: runs the tests that tests/parity.txt names, and writes docs/parity.md.
set -euo pipefail
. tools/lib.sh

# in_terminal FILE DIR COMMAND: runs it in DIR on a terminal of 112 columns, and keeps every byte that it writes.
in_terminal() {
  (cd "$2" && COLUMNS=112 TERM=xterm-256color LC_ALL=C.UTF-8 script -qfec "stty cols 112 rows 30; $3" "$1" >/dev/null)
}

screenshots() { # DIR
  local out=$1 work=$PWD/build/release/screenshots bin=$PWD/build/release/bin
  need $packages_build $packages_test $packages_docs
  build release levin_log_demo mnist
  rm -rf "$work"
  mkdir -p "$work" "$out"
  say "training"
  in_terminal "$work/mnist.txt" "$work" "$bin/mnist"
  in_terminal "$work/demo.txt" "$work" "$bin/levin_log_demo full 300"
  "$bin/levin_log_demo" "$work/running" 20 stop >/dev/null
  "$bin/levin_log_demo" "$work/empty" 0 >/dev/null
  [ -f runs/gan/report.html ] || bash tools/verbs/gan.sh --classifier "$work/runs/mnist/best" >/dev/null
  say "taking pictures"
  python3 tools/screenshots.py "$work" runs/gan docs/images "$out"
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
  --screenshots) screenshots "${2:-build/release/screenshots/all}" ;;
  --parity) parity ;;
  *) usage_error "docs knows --screenshots [DIR] and --parity" ;;
esac
