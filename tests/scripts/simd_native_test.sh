# A build with LEVIN_SIMD=native has kernels for the widest of Highway's instruction sets that this processor has, and for
# no other. AMX is not one of Highway's.
. tests/scripts/lib.sh
dir=$build/native
cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLEVIN_SIMD=native -DLEVIN_UNITY=OFF -DLEVIN_INSTALL=OFF \
  -DLEVIN_BUILD_TESTS=OFF -DLEVIN_BUILD_EXAMPLES=OFF -DLEVIN_BUILD_BENCH=OFF -DLEVIN_EMULATOR=OFF >/dev/null
cat >"$dir/targets.cpp" <<'EOF'
#include "kernels/cpu/targets.h"
#include <hwy/targets.h>
#include <cstdio>
int main() {
  std::printf("%lld %s\n", static_cast<long long>(HWY_TARGETS), hwy::TargetName(hwy::SupportedTargets() & HWY_TARGETS));
}
EOF
objects=(CMakeFiles/levin_tensor.dir/kernels/cpu/targets.cpp.o CMakeFiles/levin_tensor.dir/core/src/error.cpp.o)
ninja -C "$dir" "${objects[@]}" >/dev/null
g++ -std=c++20 -I. -Icore/include -I"$dir/generated/include" "$dir/targets.cpp" "${objects[@]/#/$dir/}" -lfmt -o "$dir/targets"
read -r targets name <<<"$("$dir/targets")"
[ "$((targets & (targets - 1)))" = 0 ] || fail "the build has several targets: $targets"
install_to_stage
widest=$(LEVIN_CPU_CAPABILITY=avx512 "$stage/bin/levin-doctor" | awk '/SIMD target/ { print $3 }')
[ "$name" = "$widest" ] || fail "the build is for $name, but this processor has $widest"
