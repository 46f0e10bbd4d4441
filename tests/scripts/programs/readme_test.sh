# The README's program has at most 27 lines, compiles against the installed package, runs, and learns.
. tests/scripts/lib.sh
install_to_stage
work=$build/readme
rm -rf "$work"
mkdir -p "$work"

awk '/^```cpp$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$work/program.cpp"
lines=$(grep -c . "$work/program.cpp")
[ "$lines" -ge 15 ] && [ "$lines" -le 27 ] || fail "the README's program has $lines lines"

g++ -std=c++20 -O2 $(pkg-config --static --cflags levin) "$work/program.cpp" $(pkg-config --static --libs levin) \
  -o "$work/program"
output=$("$work/program")
echo "$output"
accuracy=$(sed -n 's/^test accuracy \(.*\)$/\1/p' <<<"$output")
awk -v a="${accuracy:-0}" 'BEGIN { exit !(a > 0.80) }' || fail "the README's program reached only ${accuracy:-nothing}"

for verb in $(sed -n 's/^`*\.\/run \([a-z_]*\).*/\1/p; s/^| `\.\/run \([a-z_]*\).*/\1/p' README.md | sort -u); do
  [ -f "tools/verbs/$verb.sh" ] || [ -d "examples/$verb" ] || fail "the README names ./run $verb, which does not exist"
done
