# Sourced by the script tests, which run in the repository's root.
set -euo pipefail
preset=${LEVIN_PRESET:-release}
build=$PWD/build/$preset
stage=$build/stage

fail() { echo "FAILED: $*" >&2; exit 1; }

# Installs the libraries into the build folder; files that did not change are left alone.
install_to_stage() {
  ninja -C "$build" levin_libraries >/dev/null
  cmake --install "$build" --prefix "$stage" >/dev/null
  libdir=$(dirname "$(find "$stage" -name levin.pc)")
  export PKG_CONFIG_PATH=$libdir
}
