# On a platform that is not supported, CMake stops with one sentence; on an untried processor it warns.
. tests/scripts/lib.sh
linux=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SIZEOF_VOID_P=8 -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_CXX_COMPILER_ID=GNU
  -DCMAKE_CXX_COMPILER_VERSION=12.2.0)

# says STATUS TEXT VARIABLE...: what cmake says with these variables in the place of those above.
says() {
  local status=0 text
  text=$(cmake "${linux[@]}" "${@:3}" -P cmake/LevinPlatform.cmake 2>&1 | tr '\n' ' ' | tr -s ' ') || status=1
  [ "$status" = "$1" ] || fail "${*:3}: status $status instead of $1: $text"
  grep -qF -- "$2" <<<"$text" || fail "${*:3}: $text"
}
set -o pipefail
says 0 ""
says 0 "" -DCMAKE_SYSTEM_PROCESSOR=aarch64
says 0 "" -DCMAKE_CXX_COMPILER_ID=Clang -DCMAKE_CXX_COMPILER_VERSION=16.0.6
says 0 "Nobody has tried Levin on riscv64. Levin supports Linux" -DCMAKE_SYSTEM_PROCESSOR=riscv64
says 1 "Levin does not build on Darwin. Levin supports Linux" -DCMAKE_SYSTEM_NAME=Darwin
says 1 "Levin does not build on Windows. Levin supports Linux" -DCMAKE_SYSTEM_NAME=Windows
says 1 "Levin does not build for processors of 32 bits. Levin supports" -DCMAKE_SIZEOF_VOID_P=4
says 1 "Levin does not build with libc++" -DCMAKE_CXX_FLAGS=-stdlib=libc++
says 1 "Levin does not build with the compiler MSVC. Levin supports" -DCMAKE_CXX_COMPILER_ID=MSVC
says 1 "Levin does not build with GNU 11.4.0, which is too old. Levin supports" -DCMAKE_CXX_COMPILER_VERSION=11.4.0
