# Random tests of operations, the same in every run; ./run test --full draws others each day. Wrong options are refused
# in one sentence.
. tests/scripts/lib.sh
fuzz=build/${LEVIN_PRESET:-release}/bin/levin_fuzz
for run in single:5000 graphs:5000 edits:20000; do
  "$fuzz" --seed 5 --family "${run%:*}" --count "${run#*:}" || fail "random tests failed; the lines above replay them"
done
[ -z "${LEVIN_FULL:-}" ] || "$fuzz" --seed "$(date +%Y%m%d)" --count 100000 || fail "random tests of the day failed"

refused() { # refused TEXT ARGUMENT...
  local text=$1 out
  shift
  if out=$(./run fuzz "$@" 2>&1); then fail "fuzz $* is accepted"; fi
  [[ $out == *"$text"* && $(wc -l <<<"$out") = 1 ]] || fail "fuzz $* says: $out"
}
refused "fuzz needs a target"
refused "is not a target of fuzz" files
