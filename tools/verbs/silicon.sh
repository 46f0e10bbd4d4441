# ./run silicon [--pack]: builds the CUDA tests, benchmarks and examples, packs them with the one script that tries and
# measures them on a GPU (tools/silicon/on_device.sh), runs it here, and files its report in docs/silicon. With --pack
# it only packs, for a machine that has a GPU but perhaps no compiler.
set -euo pipefail
. tools/lib.sh
pack_only=0
while [ $# -gt 0 ]; do
  case $1 in
    --pack) pack_only=1 ;;
    -h | --help) echo "usage: ./run silicon [--pack]"; exit 0 ;;
    *) usage_error "$1 is no option of silicon; it knows --pack" ;;
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
build cuda levin_cuda_tests levin_ops_tests levin_bench_cuda levin_bench_nccl mnist minimal
bash tools/silicon/pack.sh build/cuda/bin build/silicon
[ "$pack_only" = 0 ] || exit 0

status=0
bash build/silicon/levin-silicon/on_device.sh --out build/silicon/out || status=$?
mkdir -p docs/silicon
cp build/silicon/out/report/* docs/silicon/
python3 tools/silicon/tables.py
say "the report is" docs/silicon/"$(basename build/silicon/out/report/*.md)"
exit "$status"
