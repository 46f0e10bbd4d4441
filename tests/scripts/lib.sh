# Sourced by the script tests, which run in the repository's root.
set -euo pipefail
preset=${LEVIN_PRESET:-release}
build=$PWD/build/$preset
stage=$build/stage

fail() { echo "FAILED: $*" >&2; exit 1; }

# Installs the libraries into the build folder, unless nothing has changed: other tests may be linking them meanwhile.
install_to_stage() {
  exec 9>"$build/stage.lock"
  flock 9
  ninja -C "$build" levin_libraries >/dev/null
  local stamp=$build/stage.stamp
  if [ ! -f "$stamp" ] || [ -n "$(find "$build"/liblevin*.a "$build"/levin*.cmake "$build/levin.pc" "$build/generated/include" \
    */include -newer "$stamp" -print -quit)" ]; then
    cmake --install "$build" --prefix "$stage" >/dev/null
    touch "$stamp"
  fi
  exec 9>&-
  libdir=$(dirname "$(find "$stage" -name levin.pc)")
  export PKG_CONFIG_PATH=$libdir
}
