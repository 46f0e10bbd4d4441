# A small project builds and runs against the installed package: by find_package, and by pkg-config alone.
. tests/scripts/lib.sh
install_to_stage
work=$build/consumer
rm -rf "$work"

cmake -S tests/consumer -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$stage"
ninja -C "$work"
by_cmake=$("$work/consumer")

g++ -std=c++20 -O1 $(pkg-config --static --cflags levin) tests/consumer/main.cpp \
  $(pkg-config --static --libs levin) -o "$work/by_pkg_config"
by_pkg_config=$("$work/by_pkg_config")

echo "$by_cmake"
[ "$by_cmake" = "$by_pkg_config" ] || fail "pkg-config's program printed something else: $by_pkg_config"
grep -q '^consumer: ok$' <<<"$by_cmake" || fail "the consumer did not end with its last line"
