# ./run bench [--json FILE] [FILTER]: kernels from the tests' cases, the GEMM ladder, and how they stand to this machine's
# measured peaks.
set -euo pipefail
. tools/lib.sh
need $packages_build $packages_bench python3
build release levin_bench
exec python3 tools/bench.py "$@"
