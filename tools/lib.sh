# Sourced by the scripts behind ./run: packages, configuring, building. The caller stands in the repository's root.

say() { echo "==> $*" >&2; }
fail() { echo "error: $*" >&2; exit 1; }
usage_error() { echo "error: $*" >&2; exit 2; }

# The Debian packages of each purpose.
packages_build="g++ cmake ninja-build ccache mold libhwy-dev libeigen3-dev libfmt-dev zlib1g-dev libpng-dev
  libjpeg62-turbo-dev libcli11-dev nlohmann-json3-dev libspdlog-dev libgloo-dev"
packages_mnist="dataset-fashion-mnist"
packages_ddp_by_hand="dataset-fashion-mnist"
packages_transfer="dataset-fashion-mnist"
packages_model_parallel="dataset-fashion-mnist"
packages_gan="dataset-fashion-mnist"
packages_test="doctest-dev binutils pkgconf curl iproute2 dataset-fashion-mnist"
packages_bench="doctest-dev libbenchmark-dev libopenblas-dev"
packages_compare="doctest-dev libbenchmark-dev libopenblas-dev python3-venv"
packages_docs="chromium fonts-inter python3-venv bsdutils"
packages_mutants="doctest-dev dataset-fashion-mnist python3"
packages_clang="clang-16 libomp-16-dev"

# need PACKAGE...: installs what is missing; touches neither network nor root where nothing is.
need() {
  command -v dpkg-query >/dev/null || return 0 # another distribution: CMake will say what it lacks
  local missing
  missing=$(LC_ALL=C comm -13 \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | LC_ALL=C sort -u) \
    <(printf '%s\n' "$@" | LC_ALL=C sort -u) | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      fail "these packages are missing; as root, run: apt-get install" $missing
    as_root=(sudo)
  fi
  say "installing" $missing
  local log
  log=$(mktemp)
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  # The package lists may be absent or old: read them anew only when the first try fails.
  if ! "${apt[@]}" install -y --no-install-recommends $missing >"$log" 2>&1 &&
    ! { "${apt[@]}" update >"$log" 2>&1 &&
        "${apt[@]}" install -y --no-install-recommends $missing >>"$log" 2>&1; }; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install" $missing "(its last words are above). Check the network and the package sources."
  fi
  rm -f "$log"
}

# build PRESET TARGET...: configures where that was not done, is older than the presets or does not know a target yet,
# then builds.
build() {
  local preset=$1 dir=build/$1 log=build/$1.log fresh=0
  shift
  mkdir -p build
  if [ ! -f "$dir/build.ninja" ] || [ CMakePresets.json -nt "$dir/build.ninja" ] || [ -n "${LEVIN_CMAKE_ARGS:-}" ]; then
    fresh=1
  else
    for target in "$@"; do
      ninja -C "$dir" -t query "$target" >/dev/null 2>&1 || fresh=1
    done
  fi
  if [ "$fresh" = 1 ]; then
    say "configuring $dir"
    cmake --preset "$preset" ${LEVIN_CMAKE_ARGS:-} >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "cmake failed; its output is in $log"; }
  fi
  local status=0
  [ "$fresh" = 0 ] || say "building $* in $dir"
  if [ -t 2 ]; then
    ninja -C "$dir" "$@" >&2 || status=$?
  else
    ninja -C "$dir" "$@" >"$log" 2>&1 || { status=$?; grep -vE '^\[[0-9]+/[0-9]+\] [A-Z][a-z]+ing ' "$log" | tail -n 60 >&2; }
  fi
  [ "$status" = 0 ] || fail "the build of $* failed (preset $preset)."
}
