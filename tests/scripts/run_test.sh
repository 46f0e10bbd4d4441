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

work=$build/flavours
for flavour in -DLEVIN_CUDA=sideways -DLEVIN_THREADS=nonsense; do
  rm -rf "$work"
  if said=$(cmake -S . -B "$work" -G Ninja "$flavour" 2>&1); then fail "$flavour was accepted"; fi
  grep -q "${flavour#-D}: " <<<"$said" || fail "$flavour: the error does not name it: $said"
done
rm -rf "$work"
