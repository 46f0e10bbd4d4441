# ./run compare [--json FILE] [--rounds N] [FILTER]: compares Levin with PyTorch on this machine, alternating between
# the two; prints tables of ratios and rewrites the README's table.
set -euo pipefail
. tools/lib.sh
need $packages_build $packages_compare
build release levin_compare_nets levin_compare_micro
venv=build/peers/venv
if [ ! -x "$venv/bin/python" ]; then
  command -v python3 >/dev/null || fail "python3 is missing; ./run setup compare installs it"
  say "installing PyTorch from PyPI into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch==2.11.* numpy safetensors
fi
exec "$venv/bin/python" tools/compare.py "$@"
