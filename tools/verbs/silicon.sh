# ./run silicon [--pack]: builds the CUDA tests, benchmarks and examples for sm_90a, packs them with the script that
# tests and measures them on a GPU (tools/silicon/on_device.sh), runs it here, and files its report in docs/silicon.
# With --pack it only packs, for a GPU machine that may lack a compiler. Building takes longer than a GPU is often
# available, so run it with --pack whenever CUDA code has changed. It only compiles what has changed.
set -euo pipefail
. tools/lib.sh
pack_only=0
while [ $# -gt 0 ]; do
  case $1 in
    --pack) pack_only=1 ;;
    -h | --help) echo "usage: ./run silicon [--pack]"; exit 0 ;;
    *) usage_error "$1 is not an option of silicon; the only one is --pack" ;;
  esac
  shift
done

if [ "$pack_only" = 0 ] && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  fail "no NVIDIA GPU was found here; ./run silicon --pack builds the package for a machine that has one."
fi
export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc >/dev/null ||
  fail "nvcc was not found; install NVIDIA's CUDA toolkit (13.0 is tested) and put nvcc on the PATH."

need $packages_build $packages_test $packages_mnist xz-utils python3
build silicon levin_cuda_tests levin_ops_tests levin_bench_cuda levin_bench_nccl mnist minimal
bash tools/silicon/pack.sh build/silicon/bin build/silicon
[ "$pack_only" = 0 ] || exit 0

status=0
out=build/silicon/out
rm -rf "$out"
for group in correctness figures sanitizers; do
  bash build/silicon/levin-silicon/on_device.sh --out "$out" --only "$group" || status=$?
done
mkdir -p docs/silicon
cp "$out"/*.md "$out"/*.json docs/silicon/
python3 tools/silicon/tables.py
say "the report is" docs/silicon/"$(basename "$out"/*.md)"
exit "$status"
