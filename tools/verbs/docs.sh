# ./run docs --screenshots [DIR]: trains a small net and writes pictures of what people see (docs/screenshots unless DIR
# is given): the report at 1280 and 390 pixels, light and dark, and the progress bar in a terminal.
set -euo pipefail
. tools/lib.sh
[ "${1:-}" = --screenshots ] || usage_error "docs knows --screenshots [DIR]"
out=${2:-docs/screenshots}
need $packages_build $packages_test $packages_docs
build release levin_log_demo
work=build/release/screenshots
rm -rf "$work"
mkdir -p "$work" "$out"
say "training"
# script gives the program a terminal, whose every byte it keeps
COLUMNS=112 TERM=xterm-256color LC_ALL=C.UTF-8 script -qfec \
  "stty cols 112 rows 30; build/release/bin/levin_log_demo $work/full 300" "$work/terminal.txt" >/dev/null
build/release/bin/levin_log_demo "$work/running" 20 stop >/dev/null
build/release/bin/levin_log_demo "$work/empty" 0 >/dev/null
say "taking pictures"
python3 tools/screenshots.py "$work" "$out"
