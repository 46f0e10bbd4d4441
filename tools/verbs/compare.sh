# ./run compare [--json FILE] [--rounds N] [FILTER]: compares Levin with PyTorch on this machine, alternating between
# the two; prints tables of ratios and rewrites the README's table.
# ./run compare models [NAME...] [--update]: repeats the first steps of the sample programs in PyTorch and Lightning.
# ./run compare fashion [--seeds N] [--update]: seconds to 91 % on Fashion-MNIST, from the start of the process to its end.
# ./run compare profiles [--update]: where the time of a training step goes, beside the machine's rates; without peers.
set -euo pipefail
. tools/lib.sh
need $packages_build $packages_compare
models=()
script=tools/compare.py
if [ "${1:-}" = models ]; then
  shift
  need $packages_models
  for twin in examples/*/*.py; do models+=("$(basename "$twin" .py)"); done
  build release "${models[@]}"
  make_text
elif [ "${1:-}" = profiles ]; then
  shift
  need $packages_bench
  build release levin_compare_nets levin_bench
  exec python3 tools/net_profiles.py "$@"
elif [ "${1:-}" = fashion ]; then
  shift
  need $packages_mnist
  build release mnist
  script=tools/compare_fashion.py
else
  build release levin_compare_nets levin_compare_micro
fi
venv=build/peers/venv
if [ ! -x "$venv/bin/python" ]; then
  command -v python3 >/dev/null || fail "python3 is missing; ./run setup compare installs it"
  say "installing PyTorch from PyPI into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch numpy safetensors
fi
if [ ${#models[@]} -gt 0 ]; then
  "$venv/bin/python" -c 'import lightning, tokenizers, torchmetrics, torchvision' 2>/dev/null ||
    "$venv/bin/pip" install --quiet lightning tokenizers torchmetrics torchvision
  exec "$venv/bin/python" tools/compare_models.py "$@"
fi
if [ $script = tools/compare.py ]; then
  "$venv/bin/python" -c 'import jax' 2>/dev/null || "$venv/bin/pip" install --quiet jax
fi
exec "$venv/bin/python" "$script" "$@"
