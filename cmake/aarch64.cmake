# Toolchain file: cross-compiles for 64-bit Arm with Debian's g++-aarch64-linux-gnu, against the libraries that
# tools/aarch64_sysroot.sh unpacks below build/. Programs run under qemu-user. See docs/building.md.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# The compiler brings its own C and C++ libraries; all others come from the sysroot alone.
get_filename_component(CMAKE_FIND_ROOT_PATH "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot" ABSOLUTE)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${CMAKE_FIND_ROOT_PATH}/usr/include/aarch64-linux-gnu") # jconfig.h
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
