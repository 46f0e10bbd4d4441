# ./run sizes [--no-libtorch]: measures the sizes, compile times and start times of programs that use Levin, shared and
# static, beside LibTorch from PyPI's torch, and rewrites the table in docs/install.md.
set -euo pipefail
. tools/lib.sh
libtorch=1
for argument in "$@"; do
  case $argument in
    --no-libtorch) libtorch=0 ;;
    -h | --help) echo "usage: ./run sizes [--no-libtorch]"; exit 0 ;;
    *) usage_error "$argument is not an option of sizes; the option is --no-libtorch" ;;
  esac
done
need $packages_build $packages_compare dataset-fashion-mnist pkgconf binutils
for preset in release static; do
  build $preset levin_libraries
  cmake --install "build/$preset" --prefix "build/sizes/prefix_$preset" >/dev/null
done
venv=build/peers/venv
if [ "$libtorch" = 1 ] && [ ! -x "$venv/bin/python" ]; then
  say "installing PyTorch from PyPI into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch numpy safetensors
fi
if [ "$libtorch" = 0 ]; then
  exec python3 tools/sizes.py build/sizes/prefix_release build/sizes/prefix_static
fi
exec python3 tools/sizes.py --update build/sizes/prefix_release build/sizes/prefix_static "$venv"
