# Says at once where Levin does not build, and where nobody has tried it. docs/platforms.md has the table.
set(LEVIN_SUPPORTED "Levin supports Linux on 64-bit processors (x86-64; aarch64 cross-compiled) with g++ 12 or clang 16 \
and libstdc++. See docs/platforms.md.")
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "Levin does not build on ${CMAKE_SYSTEM_NAME}. ${LEVIN_SUPPORTED}")
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "Levin does not build for processors of 32 bits. ${LEVIN_SUPPORTED}")
endif()
if(CMAKE_CXX_FLAGS MATCHES "-stdlib=libc\\+\\+")
  message(FATAL_ERROR "Levin does not build with libc++ (-stdlib=libc++ in CMAKE_CXX_FLAGS), since the packages that it "
    "uses are built with libstdc++. ${LEVIN_SUPPORTED}")
endif()
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  message(FATAL_ERROR "Levin does not build with the compiler ${CMAKE_CXX_COMPILER_ID}. ${LEVIN_SUPPORTED}")
endif()
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12) OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16))
  message(FATAL_ERROR "Levin does not build with ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, which is too old. "
    "${LEVIN_SUPPORTED}")
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|aarch64|arm64)$")
  message(WARNING "Nobody has tried Levin on ${CMAKE_SYSTEM_PROCESSOR}. ${LEVIN_SUPPORTED}")
endif()
