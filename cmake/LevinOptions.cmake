# Options, output folders, and the flags of Levin's own targets.

option(LEVIN_BUILD_EXAMPLES "Build the sample programs" ${PROJECT_IS_TOP_LEVEL})
option(LEVIN_BUILD_TESTS "Build the tests (where doctest is installed)" ${PROJECT_IS_TOP_LEVEL})
option(LEVIN_BUILD_BENCH "Build the benchmarks (where Google Benchmark is installed)" ${PROJECT_IS_TOP_LEVEL})
option(LEVIN_INSTALL "Make rules for install, find_package and pkg-config" ${PROJECT_IS_TOP_LEVEL})
option(LEVIN_WERROR "Treat warnings in Levin's own code as errors" OFF)
option(LEVIN_UNITY "Compile the sources in batches (off: every file by itself)" ON)
option(LEVIN_FOREIGN_HEADERS "Precompile others' headers (std, fmt, nlohmann) where files are compiled by themselves" OFF)
option(LEVIN_UNITY_TESTS "Compile the tests in batches" ${LEVIN_UNITY})
option(LEVIN_STATIC "Programs load no shared library but libc's: for g++, without Gloo, fmt and spdlog as headers" OFF)
set(LEVIN_CUDA OFF CACHE STRING "CUDA flavour: OFF, ON or EMULATE")
set(LEVIN_SIMD all CACHE STRING "Instruction sets of SIMD kernels: all (chosen at run time) or native")
set(LEVIN_THREADS pool CACHE STRING "Backend of core::parallel_for: pool (threads of its own), openmp or serial")
set(LEVIN_EMULATE_SANITIZER none CACHE STRING "What watches kernels in the emulator: none, address, memory or thread")
set_property(CACHE LEVIN_CUDA PROPERTY STRINGS OFF ON EMULATE)
set_property(CACHE LEVIN_EMULATE_SANITIZER PROPERTY STRINGS none address memory thread)
set_property(CACHE LEVIN_SIMD PROPERTY STRINGS all native)
set_property(CACHE LEVIN_THREADS PROPERTY STRINGS pool openmp serial)

if(NOT LEVIN_CUDA MATCHES "^(OFF|ON|EMULATE)$")
  message(FATAL_ERROR "LEVIN_CUDA=${LEVIN_CUDA}: choose OFF, ON (needs nvcc) or EMULATE (CUDA kernels on the CPU).")
endif()
if(NOT LEVIN_EMULATE_SANITIZER MATCHES "^(none|address|memory|thread)$")
  message(FATAL_ERROR "LEVIN_EMULATE_SANITIZER=${LEVIN_EMULATE_SANITIZER}: choose none, address, memory or thread.")
endif()
if(LEVIN_STATIC AND NOT LEVIN_CUDA STREQUAL "OFF")
  message(FATAL_ERROR "LEVIN_STATIC=ON with LEVIN_CUDA=${LEVIN_CUDA}: static builds have no CUDA. Leave one of them out.")
endif()
set(LEVIN_HAS_CUDA 0)
if(LEVIN_CUDA STREQUAL "ON")
  set(LEVIN_HAS_CUDA 1)
endif()
option(LEVIN_EMULATOR "Build the emulator, in which the tests run the CUDA kernels" ${PROJECT_IS_TOP_LEVEL})
if(LEVIN_CUDA STREQUAL "ON")
  set(LEVIN_EMULATOR OFF)
elseif(LEVIN_CUDA STREQUAL "EMULATE")
  set(LEVIN_EMULATOR ON)
endif()
if(NOT LEVIN_THREADS MATCHES "^(pool|openmp|serial)$")
  message(FATAL_ERROR "LEVIN_THREADS=${LEVIN_THREADS}: choose pool, openmp or serial.")
endif()

# LEVIN_SIMD_ONLY is Highway's name of the widest instruction set of this processor that kernels are written for.
if(NOT LEVIN_SIMD MATCHES "^(all|native)$")
  message(FATAL_ERROR "LEVIN_SIMD=${LEVIN_SIMD}: choose all or native (for the processor of this machine alone).")
endif()
set(LEVIN_SIMD_SETS all)
unset(LEVIN_SIMD_ONLY)
if(LEVIN_SIMD STREQUAL "native" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros)
  set(LEVIN_SIMD_SETS SSE4)
  if(macros MATCHES "__AVX512F__" AND macros MATCHES "__AVX512VL__" AND macros MATCHES "__AVX512DQ__" AND
      macros MATCHES "__AVX512BW__")
    set(LEVIN_SIMD_SETS AVX3)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__F16C__" AND
      macros MATCHES "__BMI2__")
    set(LEVIN_SIMD_SETS AVX2)
  endif()
  set(LEVIN_SIMD_ONLY HWY_${LEVIN_SIMD_SETS})
endif()

if(NOT PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release) # of Levin alone: without optimisation its kernels would be a hundred times slower
endif()
if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

  # NOHASHDIR and BASEDIR let build folders and copies of the tree share one cache. DEPEND looks results up by the
  # contents of headers, not by preprocessed text: `#pragma once` in a precompiled header compares contents, so one that
  # was made before a comment changed does not fit.
  find_program(LEVIN_CCACHE ccache)
  if(LEVIN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${LEVIN_CCACHE}") # required by ccache for precompiled headers
  endif()
  find_program(LEVIN_MOLD mold)
  if(LEVIN_MOLD AND NOT CMAKE_CROSSCOMPILING) # a cross compiler looks for a linker of its own prefix
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# For code whose compile time counts more than its speed. LEVIN_LEAST_OPTIMISED compiles a fifth faster than
# LEVIN_LITTLE_OPTIMISED.
set(LEVIN_LITTLE_OPTIMISED -O1)
set(LEVIN_LEAST_OPTIMISED -O1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # which then sees uses of uninitialised variables where there are none
  set(LEVIN_LITTLE_OPTIMISED -O1 -Wno-maybe-uninitialized)
  set(LEVIN_LEAST_OPTIMISED -Og -Wno-maybe-uninitialized)
endif()

# levin_sanitizer_macros(<list> <flags>) lists the macros by which sources know the sanitizers that the flags name. GCC
# defines them by itself, clang 16 does not. Without them the allocators tell the address sanitizer nothing, and it misses
# accesses behind a tensor and to a freed one.
function(levin_sanitizer_macros list flags)
  set(macros "")
  foreach(sanitizer IN ITEMS address thread)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND flags MATCHES "-fsanitize=([a-z,]*,)?${sanitizer}")
      string(TOUPPER ${sanitizer} name)
      list(APPEND macros __SANITIZE_${name}__=1)
    endif()
  endforeach()
  set(${list} ${macros} PARENT_SCOPE)
endfunction()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
levin_sanitizer_macros(macros "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
add_compile_definitions(${macros})

# Kernels write their fused multiply-adds out (Highway's MulAdd), so contraction is off: scalar code gives the same
# bits on every target and with both compilers.
function(levin_flags target)
  set(flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${LEVIN_WERROR}>:-Werror>
    -ffp-contract=off -fno-math-errno -fno-trapping-math)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False for literal + std::string: GCC bug 105651.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang") # which is also given options that silence g++ alone
    target_compile_options(${target} PRIVATE -Wno-unknown-warning-option)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64") # notes about GCC 10.1
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # collect garbage above 512 MB: compiles a tenth faster, in 100 MB more
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
  endif()
  set_target_properties(${target} PROPERTIES CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()
