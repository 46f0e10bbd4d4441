# Programs stay as small as size_limits.txt says, and load no library but those that they need. The static build is
# checked with LEVIN_FULL: it is 4 MB at most, loads libc alone, starts within 15 ms and trains LeNet.
. tests/scripts/lib.sh
install_to_stage
work=$build/sizes
mkdir -p "$work"

# measure NAME SOURCE ALLOWED: compiles a program against the package on PKG_CONFIG_PATH, and checks its size and libraries.
measure() {
  local name=$1 program=$work/$1 limit size strange
  g++ -O2 $(pkg-config --cflags levin) "$2" $(pkg-config --libs levin) -o "$program"
  strip "$program"
  size=$(stat -c %s "$program")
  limit=$(sed -n "s/^$name: //p" tests/scripts/size_limits.txt)
  [ -n "$limit" ] || fail "size_limits.txt has no limit for $name, which has $size bytes"
  echo "$name: $size bytes stripped, $limit are allowed; loads $(needed "$program" | tr '\n' ' ')"
  [ "$size" -le "$limit" ] || fail "$name has $size bytes stripped, $limit are allowed. \
Find out what grew (nm --size-sort -C), or raise the limit in size_limits.txt and say why in the commit."
  [ "$size" -ge $((limit * 8 / 10)) ] || fail "$name has $size bytes stripped, far less than the limit $limit: lower it"
  strange=$(needed "$program" | grep -vE "^($3)\$" || true)
  [ -z "$strange" ] || fail "$name also loads" $strange
}
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

libc='libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2'
few="$libc|libstdc\+\+\.so\.6|libgcc_s\.so\.1|libfmt\.so\.9"
measure minimal examples/minimal/main.cpp "$few"
measure lenet tests/consumer/lenet.cpp "$few"
measure inference tests/consumer/inference.cpp "$few"
"$work/lenet" "$work/lenet.weights" 1 >/dev/null
"$work/inference" "$work/lenet.weights" | grep -q '^class [0-9]$' || fail "inference did not print a class"

[ -n "${LEVIN_FULL:-}" ] || exit 0
(. tools/lib.sh; build static levin_libraries)
cmake --install build/static --prefix "$build/stage_static" >/dev/null
PKG_CONFIG_PATH=$(dirname "$(find "$build/stage_static" -name levin.pc)")
for name in minimal lenet inference; do
  source=tests/consumer/$name.cpp
  [ "$name" != minimal ] || source=examples/minimal/main.cpp
  measure "static_$name" "$source" "$libc"
  size=$(stat -c %s "$work/static_$name")
  [ "$size" -le 4000000 ] || fail "static_$name has $size bytes, more than 4 MB"
done
accuracy=$("$work/static_lenet" "$work/static.weights" | sed -n 's/^test accuracy //p')
awk -v a="${accuracy:-0}" 'BEGIN { exit !(a > 0.75) }' || fail "an epoch of LeNet reached an accuracy of only ${accuracy:-nothing}"
# Processes of one machine train together without Gloo; what needs it says so.
g++ -O0 -DFMT_HEADER_ONLY $(pkg-config --cflags levin) examples/ddp_by_hand/main.cpp $(pkg-config --libs levin) -o "$work/ddp"
"$work/ddp" --steps 2 | grep -q '^result: ranks=2' || fail "two processes did not train together in a static build"
if LEVIN_TRANSPORT=tcp "$work/ddp" --steps 2 2>"$work/error"; then fail "a static build has TCP connections"; fi
grep -q "\[make_process_group\] rank . of 2 would need Gloo's connections, which this build does not have" "$work/error" ||
  fail "without Gloo the error is: $(cat "$work/error")"
best=1000000
for _ in $(seq 200); do # the best of many, as other processes may delay any of them
  begin=$(date +%s%N)
  "$work/static_inference" "$work/static.weights" >/dev/null
  time=$((($(date +%s%N) - begin) / 1000))
  [ "$time" -ge "$best" ] || best=$time
  [ "$best" -gt 15000 ] || break
done
echo "static: test accuracy $accuracy after an epoch; inference takes $best us from start to end"
[ "$best" -le 15000 ] || fail "static_inference takes $best us, more than 15 ms"
