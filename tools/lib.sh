# Sourced by the scripts behind ./run: packages, configuration, builds. The current directory is the repository's root.

say() { echo "==> $*" >&2; }
fail() { echo "error: $*" >&2; exit 1; }
usage_error() { echo "error: $*" >&2; exit 2; }

# The Debian packages for each purpose.
packages_build="g++ cmake ninja-build ccache mold libhwy-dev libeigen3-dev libfmt-dev zlib1g-dev libpng-dev
  libjpeg62-turbo-dev libcli11-dev nlohmann-json3-dev libspdlog-dev libgloo-dev"
packages_mnist="dataset-fashion-mnist"
packages_ddp_by_hand="dataset-fashion-mnist"
packages_transfer="dataset-fashion-mnist"
packages_deploy="dataset-fashion-mnist"
packages_classifier="dataset-fashion-mnist"
packages_model_parallel="dataset-fashion-mnist"
packages_gan="dataset-fashion-mnist"
packages_vae="dataset-fashion-mnist"
packages_resnet="dataset-fashion-mnist"
packages_vit="dataset-fashion-mnist"
packages_ddpm="dataset-fashion-mnist"
packages_detect="dataset-fashion-mnist"
packages_gpt="bible-kjv"
packages_lstm="bible-kjv"
packages_test="doctest-dev python3 libdlpack-dev binutils pkgconf curl iproute2 dataset-fashion-mnist"
packages_bench="doctest-dev libbenchmark-dev libopenblas-dev"
packages_compare="doctest-dev libbenchmark-dev libopenblas-dev python3-venv"
packages_models="bible-kjv dataset-fashion-mnist"
packages_clients="doctest-dev libdlpack-dev python3-venv libpython3-dev"
packages_docs="chromium fonts-inter python3-venv bsdutils"
packages_mutants="doctest-dev dataset-fashion-mnist python3"
packages_aarch64="g++-aarch64-linux-gnu qemu-user"
packages_clang="clang-16 libomp-16-dev libclang-rt-16-dev llvm-16" # llvm-16: symbols in the sanitizers' reports

# need PACKAGE...: installs missing packages. If none is missing it needs neither network nor root.
need() {
  command -v dpkg-query >/dev/null || return 0 # on other distributions CMake reports what is missing
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
  # The package lists may be absent or outdated, so they are updated only if the first attempt fails.
  if ! "${apt[@]}" install -y --no-install-recommends $missing >"$log" 2>&1 &&
    ! { "${apt[@]}" update >"$log" 2>&1 &&
        "${apt[@]}" install -y --no-install-recommends $missing >>"$log" 2>&1; }; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install" $missing "(its last output is above). Check the network and the package sources."
  fi
  rm -f "$log"
}

# make_text: writes the text that language models learn, as Debian's bible-kjv prints it, to build/data/bible.txt.
make_text() {
  [ ! -f build/data/bible.txt ] || return 0
  mkdir -p build/data
  bible -f 'gen1:1-rev22:21' | sed 's/ *$//' >build/data/bible.txt.part
  mv build/data/bible.txt.part build/data/bible.txt
}

# minutes_of SECONDS: formats 75 as 1:15 and 3700 as 1:01:40.
minutes_of() {
  if [ "$1" -lt 3600 ]; then
    printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
  else
    printf '%d:%02d:%02d' $(($1 / 3600)) $(($1 / 60 % 60)) $(($1 % 60))
  fi
}

# show_build NAME LOG: copies ninja's output from stdin to LOG and shows the progress on stderr: in a terminal as one
# line that is rewritten in place, elsewhere as a line every five seconds. A build with nothing to do shows nothing.
show_build() {
  local name=$1 start=$SECONDS columns=0 shown=0 finished=0 total=0 failed=0
  local line= part text status seconds
  if [ -t 2 ]; then
    columns=$(stty size <&2 2>/dev/null | cut -d ' ' -f 2)
    [ "${columns:-0}" -gt 0 ] || columns=80
  fi
  while :; do
    status=0
    IFS= read -r -t 1 part || status=$? # above 128: timeout after a second; part may hold an incomplete line
    line+=$part
    if [ "$status" -lt 128 ]; then
      [ -z "$line" ] || printf '%s\n' "$line"
      case $line in FAILED:*) failed=1 ;; esac
      if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}; fi
      line=
    fi
    [ "$status" != 1 ] || break
    seconds=$((SECONDS - start))
    text="building $name: starting, $(minutes_of $seconds)"
    if [ "$total" -gt 0 ]; then
      text="building $name: $finished of $total files, $((total - finished)) left, $(minutes_of $seconds)"
      if [ "$finished" -ge 10 ] && [ "$seconds" -ge 10 ]; then
        text+=", about $(minutes_of $((seconds * (total - finished) / finished))) to go"
      fi
    fi
    if [ "$columns" -gt 0 ] && [ $((total + seconds)) -gt 0 ]; then
      text="==> $text"
      printf '\r\033[K%s' "${text:0:columns-1}" >&2
      shown=$seconds
    elif [ "$columns" = 0 ] && [ "$seconds" -ge $((shown + 5)) ]; then
      say "$text"
      shown=$seconds
    fi
  done >"$2"
  seconds=$(minutes_of $((SECONDS - start)))
  [ "$columns" = 0 ] || printf '\r\033[K' >&2
  if [ "$failed" = 1 ]; then
    say "building $name: failed after $finished of $total files, $seconds"
  elif [ "$total" -gt 0 ] && [ "$finished" = "$total" ]; then
    say "built $name: $total files, $seconds"
  fi
}

# build_messages LOG: prints the messages of compilers and ninja, without progress lines and compiler commands.
build_messages() {
  awk '/^\[[0-9]+\/[0-9]+\] / || /^ninja: Entering directory/ { next } { print } /^FAILED: / { getline }' "$1"
}

# build PRESET TARGET...: configures if that was not done, or with other LEVIN_CMAKE_ARGS, or before the last change of
# the presets, or without one of the targets; then builds. With simd=native a folder that is not configured yet gets SIMD
# kernels for this processor alone; any other build there adds those for the other instruction sets.
build() {
  local preset=$1 dir=build/$1 log=build/$1.log fresh=0 args=-DLEVIN_SIMD=all
  shift
  if [ "${simd:-all}" = native ] && ! grep -qs '^LEVIN_SIMD:STRING=all' "$dir/CMakeCache.txt"; then
    args=-DLEVIN_SIMD=native
  fi
  args+=" ${LEVIN_CMAKE_ARGS:-}"
  mkdir -p build
  if [ ! -f "$dir/build.ninja" ] || [ CMakePresets.json -nt "$dir/build.ninja" ] ||
    [ "$(cat "$dir/cmake_args" 2>/dev/null)" != "$args" ]; then
    fresh=1
  else
    for target in "$@"; do
      ninja -C "$dir" -t query "$target" >/dev/null 2>&1 || fresh=1
    done
  fi
  if [ "$fresh" = 1 ]; then
    say "configuring $dir"
    cmake --preset "$preset" $args >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "cmake failed; its output is in $log"; }
    echo "$args" >"$dir/cmake_args"
  fi
  local name="$*" messages
  [ ${#name} -le 40 ] || name="$# targets"
  if ! (set -o pipefail; NINJA_STATUS='[%f/%t] ' ninja -C "$dir" "$@" 2>&1 | show_build "$name in $dir" "$log"); then
    mapfile -t messages < <(build_messages "$log")
    printf '%s\n' "${messages[@]:0:80}" >&2
    [ ${#messages[@]} -le 80 ] || echo "... and $((${#messages[@]} - 80)) more lines" >&2
    fail "the build of $* failed (preset $preset); the full output is in $log"
  fi
}
