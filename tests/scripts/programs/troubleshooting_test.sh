# Every program of docs/troubleshooting.md fails to compile, with the error that its first line names.
. tests/scripts/lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v work="$work" '/^```cpp/ { ++n; inside = 1; next } /^```/ { inside = 0 } inside { print > (work "/" n ".txt") }' \
  docs/troubleshooting.md
includes=$(for header in */include; do echo "-I$header"; done)
programs=0
for text in "$work"/*.txt; do
  expected=$(sed -n '1s/^\/\/ error: //p' "$text")
  [ -n "$expected" ] || fail "a program of docs/troubleshooting.md names no error: $(head -n 2 "$text")"
  {
    echo '#include <levin/levin.h>'
    echo 'using namespace levin;'
    if grep -q '^Trainer' "$text"; then echo 'void program() {'; cat "$text"; echo '}'; else cat "$text"; fi
  } >"$work/program.cpp"
  if g++ -std=c++20 -fsyntax-only $includes -I"$build/generated/include" "$work/program.cpp" 2>"$work/messages"; then
    fail "this compiles: $(cat "$text")"
  fi
  grep -q "error: $expected" "$work/messages" || fail "expected \"$expected\": $(grep -m 3 error "$work/messages")"
  programs=$((programs + 1))
done
[ "$programs" -ge 4 ] || fail "only $programs programs were found"
