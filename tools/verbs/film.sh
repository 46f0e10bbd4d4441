# ./run film KERNEL FILE: runs a CUDA kernel in the emulator and writes a film of it as one HTML page, which plays what
# each lane does, the accesses to shared memory by bank, and the sectors of global memory. ./run film lists the kernels.
set -euo pipefail
. tools/lib.sh

need $packages_build $packages_test # the program is among the tests; binutils finds the lines of the source
build release levin_film
build/release/bin/levin_film "$@"
