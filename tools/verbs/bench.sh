# ./run bench [--json FILE] [FILTER]: benchmarks kernels from the test cases and the GEMM ladder, and compares them with
# this machine's measured peaks.
set -euo pipefail
. tools/lib.sh
need $packages_build $packages_bench python3
build release levin_bench
exec python3 tools/bench.py "$@"
