# ./run test [--preset P] [--programs] [FILTER...]: builds and runs the tests of the libraries, or with --programs those of
# the sample programs and of whatever is compiled against the libraries. FILTER is part of a test's name, in either group.
# Without a preset: release, which runs the CUDA kernels in the emulator, with SIMD kernels for this processor alone;
# --programs and --full add those for the other instruction sets. ./run test --full is tools/full_test.py. The closing line
# is `N passed, N failed`, counted in test cases.
set -euo pipefail
. tools/lib.sh
preset= filters=() group=libraries
if [[ " $* " == *" --full "* ]]; then # everything, in parts
  need python3
  exec python3 tools/full_test.py "$@"
fi
known="release, debug, tsan, clang, emulate, emulate-asan, emulate-msan, emulate-tsan, cuda or aarch64"
while [ $# -gt 0 ]; do
  case $1 in
    --preset) [ $# -gt 1 ] || usage_error "--preset needs a name: $known"; preset=$2; shift ;;
    --preset=*) preset=${1#*=} ;;
    --programs) group=programs ;;
    -h | --help) echo "usage: ./run test [--preset P] [--programs] [--full] [FILTER...], where P is $known"; exit 0 ;;
    -*) usage_error "$1 is not an option of test; the options are --preset P, --programs and --full" ;;
    *) filters+=("$1") ;;
  esac
  shift
done
# A filter, a sanitizer and --full choose from both groups.
[ -z "${LEVIN_FULL:-}" ] && [ ${#filters[@]} = 0 ] && [ "${preset:-release}" = release ] || group=all
[ -z "$preset" ] || grep -q "\"name\": \"$preset\"" CMakePresets.json ||
  usage_error "$preset is not a preset; choose $known"

wanted() { # wanted NAME: true if it contains one of the filters, or if there is none
  local filter
  for filter in "${filters[@]}"; do
    [[ $1 != *"$filter"* ]] || return 0
  done
  [ ${#filters[@]} = 0 ]
}

# The test programs of the group and of a preset that match a filter: all in release; the presets of the emulator and of
# nvcc are about CUDA kernels, aarch64 is about the CPU kernels and what computes with them, the others about the rest.
programs_of() {
  local dir name
  for dir in tests/*/; do
    name=$(basename "$dir")
    [ -n "$(find "$dir" -name '*_test.cpp' -print -quit)" ] && wanted "$name" || continue
    case $name in
      examples | film) [ "$group" != libraries ] || continue ;;
      *) [ "$group" != programs ] || continue ;;
    esac
    case $1:$name in
      release:* | emulate:nccl | emulate*:emulator | emulate*:cuda | emulate*:ops | cuda:cuda | cuda:ops) echo "$name" ;;
      aarch64:core | aarch64:kernels | aarch64:autograd | aarch64:nn | aarch64:optim | aarch64:ops) echo "$name" ;;
      emulate*:* | cuda:* | aarch64:* | *:emulator | *:cuda | *:nccl | *:film) ;;
      *) echo "$name" ;;
    esac
  done
}

simd=all linked=()
if [ -z "$preset" ]; then
  known=$(programs_of release)
  for script in tests/scripts/{,programs/,full/}*_test.sh; do
    [[ $group != libraries || $script != */programs/* ]] || continue
    if wanted "$(basename "$script")"; then known+=$script; fi
  done
  # The scripts of programs link the libraries, and measure sizes with the kernels for all instruction sets.
  if [[ $known == */programs/* ]]; then linked=(levin_libraries); else simd=native; fi
  [ -n "$known" ] || usage_error "no test program's name contains \"${filters[*]}\""
  preset=release
fi
need $packages_build $packages_test
# With LEVIN_FULL, the scripts of the preset release compile programs with clang++ too.
case $preset:${LEVIN_FULL:-} in clang:* | emulate-msan:* | release:?*) need $packages_clang ;; esac
launcher=() # the command that runs a test program
if [ "$preset" = aarch64 ]; then # on a processor that is emulated
  need $packages_aarch64
  bash tools/aarch64_sysroot.sh
  launcher=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
fi
scripts=() # the preset's scripts
case $preset in
  release)
    [ "$group" = programs ] || scripts=(tests/scripts/*_test.sh)
    [ "$group" = libraries ] || scripts+=(tests/scripts/programs/*_test.sh)
    # The long ones run with --full, or by name.
    if [ -n "${LEVIN_FULL:-}" ] || [ ${#filters[@]} -gt 0 ]; then scripts+=(tests/scripts/full/*_test.sh); fi ;;
  cuda)
    scripts=(tests/scripts/cuda/*_test.sh)
    need python3-venv
    export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin ;;
esac
case $group in
  libraries) targets=(levin_library_tests) ;;
  programs) targets=(levin_program_tests levin_examples) ;;
  all) targets=(levin_tests levin_examples) ;;
esac
if [ ${#filters[@]} -gt 0 ] || [[ $preset == emulate* || $preset == cuda || $preset == aarch64 ]]; then
  targets=()
  for name in $(programs_of "$preset"); do targets+=("levin_${name}_tests"); done
fi
targets+=("${linked[@]}")
[ "$preset" = cuda ] && targets+=(levin_tensor)
[ ${#targets[@]} -eq 0 ] || build "$preset" "${targets[@]}"

# Leaks are errors in the debug preset, the first race ends a program; a stall is one everywhere.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
TSAN_OPTIONS+=:die_after_fork=0:suppressions=$PWD/tests/tsan_suppressions.txt # children start workers of their own
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
limit=900
[ "$preset" = release ] || limit=7200 # sanitizers and an emulated processor take up to ten times as long
limit=${LEVIN_TEST_TIMEOUT:-$limit}
[ "$preset" != cuda ] || export CUDA_MODULE_LOADING=EAGER # tests block streams while kernels are launched
if [ "$preset" = release ]; then # for preset cuda's look at what nvcc made of the kernels that were launched
  export LEVIN_EMULATOR_LAUNCHES=$PWD/build/launches.tsv
  [ ${#filters[@]} -gt 0 ] || [ "$group" = programs ] || rm -f "$LEVIN_EMULATOR_LAUNCHES"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $preset in emulate-?san | aarch64) export LEVIN_SMALL_CASES=${LEVIN_SMALL_CASES:-1} ;; esac
# report NAME PASSED FAILED SECONDS: the line of a test, and of one that failed its errors and the end of its output, in one
# piece, since several tests run at once.
report() {
  {
    printf '%-28s %5d passed  %d failed  %4d s\n' "$1" "$2" "$3" "$4"
    if [ "$3" != 0 ]; then
      echo "--- what failed in $1, and its last lines:"
      grep -a -B 6 -A 4 ' ERROR: ' "$work/$1.log" | head -n 60 || true
      tail -n 40 "$work/$1.log"
      echo "---"
    fi
  } >"$work/$1.report"
  flock "$work" cat "$work/$1.report"
  echo "$2 $3" >"$work/$1.count"
}

run_program() { # a doctest program
  local name=$1 start=$SECONDS status=0 summary ok bad skip only=() log=$work/$1.log
  case $preset:$name in # the operations on devices: the host's code is not watched
    emulate-?san:levin_ops_tests) only=(-tc="operations on cuda*") ;;
    # qemu ends forked children that start threads, and so does g++'s thread sanitizer where such a thread gets the
    # identity of one that the parent has; CI runs these cases under clang's.
    aarch64:levin_core_tests | tsan:levin_core_tests) only=(-tse=children) ;;
  esac
  timeout -k 5 "$limit" "${launcher[@]}" "build/$preset/bin/$name" --no-colors=true "${only[@]}" >"$log" 2>&1 || status=$?
  summary=$(grep -a '^\[doctest\] test cases:' "$log" | tail -n 1 | tr -cd '0-9|') || summary= # a program that died wrote none
  IFS='|' read -r _ ok bad skip <<<"${summary:-|0|0|0}"
  [ ${#only[@]} = 0 ] || skip=0
  # Death by signal, timeout or a sanitizer counts as one more failure; so does a test case that was left out.
  if [ "$status" != 0 ] && [ "${bad:-0}" = 0 ]; then bad=1; fi
  if [ -z "$summary" ]; then bad=1; fi
  [ "$status" = 0 ] || echo "(ended with status $status)" >>"$log"
  report "$name" "$ok" $((bad + skip)) $((SECONDS - start))
}

run_script() { # a script test: 0 passed, anything else failed
  local name start=$SECONDS status=0
  name=$(basename "$1" .sh)
  LEVIN_PRESET=$preset timeout -k 5 "$limit" bash "$1" >"$work/$name.log" 2>&1 || status=1
  report "$name" $((1 - status)) $status $((SECONDS - start))
}

# Two tests run at once, as one waits for files, sleeps and other processes half of its time. Under a sanitizer of the
# emulator one alone has all the memory.
jobs=${LEVIN_TEST_JOBS:-2}
[[ $preset != emulate-* ]] || jobs=1
passed=0 failed=0 running=0
in_turn() { # in_turn FUNCTION ARGUMENT
  if [ "$running" -ge "$jobs" ]; then
    wait -n || true
    running=$((running - 1))
  fi
  "$@" &
  running=$((running + 1))
}

declare -A skipped=()
tests=()
for script in "${scripts[@]}"; do
  if wanted "$(basename "$script")"; then tests+=("$script"); fi
done
for name in $(programs_of "$preset"); do
  if [ "$preset" = cuda ] && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
    skipped[gpu]=$((${skipped[gpu]:-0} + 1))
  else
    tests+=("levin_${name}_tests")
  fi
done
# The longest start first, so that none runs alone at the end.
for part in ops_ examples_ distributed_ silicon strategies_ trainer_ kernels_ logs cuda_ ""; do
  for i in "${!tests[@]}"; do
    case ${tests[i]} in
      *"$part"*.sh) in_turn run_script "${tests[i]}" ;;
      *"$part"*) in_turn run_program "${tests[i]}" ;;
      *) continue ;;
    esac
    unset "tests[i]"
  done
done
wait
while read -r ok bad; do
  passed=$((passed + ok)) failed=$((failed + bad))
done < <(cat /dev/null "$work"/*.count 2>/dev/null)

# A test that cannot run here prints `SKIP: key`; tests/skips.txt gives the reason for each key.
while read -r key; do
  skipped[$key]=$((${skipped[$key]:-0} + 1))
done < <(sed -n 's/^SKIP: //p' /dev/null "$work"/*.log 2>/dev/null)
for key in "${!skipped[@]}"; do
  reason=$(sed -n "s/^$key: //p" tests/skips.txt 2>/dev/null)
  if [ -z "$reason" ]; then
    failed=$((failed + skipped[$key]))
    echo "a test skipped itself for \"$key\", which tests/skips.txt does not allow"
  else
    echo "${skipped[$key]} skipped: $reason"
  fi
done
[ $((passed + failed)) -gt 0 ] || [ -n "${LEVIN_PART:-}" ] || usage_error "no test program's name contains \"${filters[*]}\""
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
