# ./run doctor: says which Debian packages are missing for which verb, then builds and runs levin-doctor, which looks at
# the processor, GPUs, libraries and speed. Its exit status is 0 whatever is missing.
set -euo pipefail
. tools/lib.sh
if [ $# -gt 0 ]; then
  [ "$1" = -h ] || [ "$1" = --help ] || usage_error "doctor has no options"
  echo "usage: ./run doctor"
  exit
fi

# absent PACKAGE...: prints the packages that are not installed.
absent() {
  LC_ALL=C comm -13 \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | LC_ALL=C sort -u) \
    <(printf '%s\n' "$@" | LC_ALL=C sort -u) | tr '\n' ' '
}
echo "Debian packages"
if command -v dpkg-query >/dev/null; then
  for purpose in build test bench compare clang docs; do
    group=packages_$purpose
    missing=$(absent ${!group})
    if [ -n "$missing" ]; then missing="missing: $missing(./run setup $purpose)"; fi
    printf '  %-22s %s\n' "$purpose" "${missing:-all installed}"
  done
else
  echo "  not a Debian system: install what docs/platforms.md lists"
fi
if command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
  printf '  %-22s %s\n' nvcc "found, for ./run test --preset cuda"
else
  printf '  %-22s %s\n' nvcc "missing; only -DLEVIN_CUDA=ON needs it (NVIDIA's CUDA toolkit 13)"
fi
echo
if [ -n "$(absent $packages_build)" ]; then
  echo "levin-doctor cannot be built until the packages for \"build\" are installed."
  exit 0
fi
if (build release levin_doctor) && build/release/bin/levin-doctor; then :; else
  echo "levin-doctor could not be built or ended with an error, see above."
fi
