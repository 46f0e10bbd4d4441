# ./run fuzz ops: runs random tests of operations, see docs/testing.md.
set -euo pipefail
. tools/lib.sh
usage='usage: ./run fuzz ops [--seed S] [--count N] [--op NAME] [--family single|graphs|edits] [--case K]
                      [--against reference|pytorch] [--workers N]

Draws N random tests (10,000) with seed S (1) and compares operations with their references in double precision, or
with PyTorch, which is installed into build/peers on first use. A failure is made small and printed with the command
that replays it: --case K runs that one alone. --op draws from one operation case of tests/cases only, --family from
single operations, graphs of several, or edits in place through views.'
case ${1:-} in
  -h | --help) echo "$usage"; exit 0 ;;
  ops) shift ;;
  '') usage_error "fuzz needs a target: ops. ./run fuzz ops --help lists the options" ;;
  *) usage_error "$1 is not a target of fuzz; choose ops" ;;
esac
for argument in "$@"; do
  case $argument in -h | --help) echo "$usage"; exit 0 ;; esac
done
need $packages_build $packages_test
build release levin_fuzz
venv=build/peers/venv
if [[ " $* " == *" --against pytorch "* ]]; then
  need python3-venv
  if [ ! -x "$venv/bin/python" ]; then
    say "installing PyTorch from PyPI into $venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet torch==2.11.* numpy safetensors
  fi
  set -- "$@" --python "$venv/bin/python"
fi
exec build/release/bin/levin_fuzz "$@"
