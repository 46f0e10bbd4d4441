# A small project builds and runs against the installed package, by find_package and by pkg-config alone, and with the tree
# by FetchContent and add_subdirectory. With LEVIN_FULL: by clang++ as well, and the two latter compile all of Levin;
# otherwise they compile the project's own file.
. tests/scripts/lib.sh
install_to_stage
work=$build/consumer
rm -rf "$work"
mkdir -p "$work"

# check WHAT PROGRAM: the program trains, catches an error of the library, and ends with its last line.
check() {
  local output
  output=$("$2") || fail "$1: the program failed: $output"
  grep -q '^consumer: ok$' <<<"$output" || fail "$1: the program did not end with its last line: $output"
  echo "$1: $output"
}

by_package() { # by_package COMPILER
  cmake -S tests/consumer -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$1" \
    -DCMAKE_PREFIX_PATH="$stage" >"$work/$1.log"
  ninja -C "$work/$1" >>"$work/$1.log"
  check "find_package, $1" "$work/$1/consumer"
  if "$work/$1/parts" nowhere >/dev/null 2>"$work/error"; then fail "the weights of nowhere were found"; fi
  grep -q '^error: .*nowhere' "$work/error" || fail "$1: the error of a missing file was not caught: $(cat "$work/error")"
  "$1" -O0 -ffunction-sections $(pkg-config --cflags levin) tests/consumer/main.cpp $(pkg-config --libs levin) \
    -Wl,--gc-sections -o "$work/pkg_config_$1"
  check "pkg-config, $1" "$work/pkg_config_$1"
}
by_package g++
[ -z "${LEVIN_FULL:-}" ] || by_package clang++-16

pkg-config --cflags levin | grep -q -- '-std=c++20' || fail "pkg-config does not give -std=c++20"
archives=$(pkg-config --libs-only-l levin | tr ' ' '\n' | grep -c levin)
[ "$archives" = 1 ] || fail "pkg-config links $archives libraries of Levin instead of one"

for way in FetchContent add_subdirectory; do
  dir=$work/$way
  cmake -S tests/consumer -B "$dir" -G Ninja -DLEVIN_FROM=$way -DLEVIN_TREE="$PWD" >"$dir.log"
  ! grep -q 'levin_tests\|levin_bench\|/examples/' "$dir/build.ninja" || fail "$way builds Levin's tests or examples"
  if [ -n "${LEVIN_FULL:-}" ]; then
    ninja -C "$dir" consumer >>"$dir.log"
    check "$way" "$dir/consumer"
  else
    ninja -C "$dir" CMakeFiles/consumer.dir/main.cpp.o >>"$dir.log"
    ninja -C "$dir" -t commands consumer | grep 'liblevin_tensor.a' >/dev/null || fail "$way does not build the library"
    echo "$way: compiled the project's own file"
  fi
  grep -m 1 -q '^  FLAGS = .*-O3.*-ffp-contract=off' "$dir/build.ninja" || fail "$way compiles Levin without optimisation"
done

# Where a package is missing, find_package says which to install.
for package in fmt spdlog Gloo; do
  debian=lib${package,,}-dev
  if cmake -S tests/consumer -B "$work/missing" -G Ninja -DCMAKE_PREFIX_PATH="$stage" \
    -DCMAKE_DISABLE_FIND_PACKAGE_$package=ON >/dev/null 2>"$work/error"; then
    fail "find_package found levin without $package"
  fi
  tr '\n' ' ' <"$work/error" | tr -s ' ' | grep -q "levin needs $package.* apt-get install $debian" ||
    fail "without $package find_package says: $(cat "$work/error")"
  rm -rf "$work/missing"
done

# The project to copy configures against the installed package as a copy, and learns.
cp -r examples/starter "$work/starter"
cmake -S "$work/starter" -B "$work/starter/build" -G Ninja -DCMAKE_PREFIX_PATH="$stage" >"$work/starter.log"
if cmake -S "$work/starter" -B "$work/missing" -G Ninja -DCMAKE_DISABLE_FIND_PACKAGE_levin=ON >/dev/null 2>"$work/error"; then
  fail "the starter configures without Levin"
fi
grep -q 'DLEVIN_REPOSITORY' "$work/error" || fail "without Levin the starter says: $(cat "$work/error")"
ninja -C "$build" starter >/dev/null
"$build/bin/starter" "$work/spirals.safetensors" | grep '^result: test_accuracy=' || fail "the starter does not learn"
[ -s "$work/spirals.safetensors" ] || fail "the starter did not save its weights"
