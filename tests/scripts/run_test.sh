# Invalid commands and build options give one sentence: status 2 from ./run, a failed configure from CMake.
. tests/scripts/lib.sh

# expect_usage_error COMMAND...: exit status 2, one line on stderr that starts with "error: ".
expect_usage_error() {
  local status=0 said
  said=$("$@" 2>&1 >/dev/null) || status=$?
  [ "$status" = 2 ] || fail "$* ended with $status, not 2"
  [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == "error: "* ]] || fail "$* said: $said"
}
expect_usage_error ./run nonsense
expect_usage_error ./run ../run
expect_usage_error ./run test --preset nonsense
expect_usage_error ./run test --nonsense
expect_usage_error ./run setup nonsense
./run help | grep -q '^usage: ' || fail "./run help prints no usage"

# A new build folder gets the SIMD kernels of this processor alone for the libraries' tests and the sample programs, and
# those for all instruction sets where sizes of programs are measured. A stand-in for cmake writes its arguments down.
work=$build/verbs
rm -rf "$work"
mkdir -p "$work/bin" "$work/tree"
cp -r run tools CMakePresets.json "$work/tree"
ln -s "$PWD/tests" "$PWD/examples" "$work/tree"
printf '#!/bin/sh\necho "$@" >"%s"\nexit 1\n' "$work/arguments" >"$work/bin/cmake"
chmod +x "$work/bin/cmake"
expect_sets() { # expect_sets all|native ARGUMENT...
  local sets=$1
  shift
  rm -rf "$work/tree/build" "$work/arguments"
  if LEVIN_CMAKE_ARGS= PATH=$work/bin:$PATH "$work/tree/run" "$@" >/dev/null 2>&1; then fail "$* passed without cmake"; fi
  grep -q -- "-DLEVIN_SIMD=$sets" "$work/arguments" || fail "$* configured with $(cat "$work/arguments")"
}
expect_sets native test
expect_sets native test core kernels
expect_sets native minimal
expect_sets all test --programs
expect_sets all test size
expect_sets all test --preset debug
rm -rf "$work"

work=$build/flavours
for flavour in -DLEVIN_CUDA=sideways -DLEVIN_THREADS=nonsense; do
  rm -rf "$work"
  if said=$(cmake -S . -B "$work" -G Ninja "$flavour" 2>&1); then fail "$flavour was accepted"; fi
  grep -q "${flavour#-D}: " <<<"$said" || fail "$flavour: the error does not name it: $said"
done
rm -rf "$work"
