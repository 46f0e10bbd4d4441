# The CUDA flavours. ON: nvcc compiles the kernels into the libraries. OFF: the libraries have none, and the tests of the
# kernels link them as compiled by the host compiler, with the emulator in the toolkit's place. EMULATE: so does every
# program.

if(LEVIN_CUDA STREQUAL "ON")
  # CMake 3.25 does not know nvcc's C++20, and wants the architectures before the language.
  set(LEVIN_CUDA_CODE all CACHE STRING "Machine code of the CUDA build: all (sm_80 and sm_90a), or sm_90a alone")
  set_property(CACHE LEVIN_CUDA_CODE PROPERTY STRINGS all sm_90a)
  if(NOT LEVIN_CUDA_CODE MATCHES "^(all|sm_90a)$")
    message(FATAL_ERROR "LEVIN_CUDA_CODE=${LEVIN_CUDA_CODE}: choose all or sm_90a.")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real)
  if(LEVIN_CUDA_CODE STREQUAL "sm_90a")
    set(CMAKE_CUDA_ARCHITECTURES 90a-real)
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "LEVIN_CUDA=ON: no nvcc was found. Install NVIDIA's CUDA toolkit (13.0 is tested) and put nvcc "
      "on the PATH, or configure with -DLEVIN_CUDA=EMULATE.")
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --expt-relaxed-constexpr -Xptxas=-v -Xfatbin=-compress-all")
  # Line information takes a twelfth of nvcc's time, and CI, which checks the machine code of a Debug build, needs none.
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    string(APPEND CMAKE_CUDA_FLAGS " -lineinfo")
  endif()
  set(CMAKE_CUDA_COMPILER_LAUNCHER bash "${PROJECT_SOURCE_DIR}/cmake/ptxas_report.sh" ${CMAKE_CXX_COMPILER_LAUNCHER})
  find_package(CUDAToolkit REQUIRED)
endif()

# The sanitizers watch the kernels, the code of devices and the emulator. All else is compiled as in preset emulate, so
# that its objects come from the compiler cache.
set(LEVIN_WATCHED "")
if(LEVIN_CUDA STREQUAL "EMULATE" AND NOT LEVIN_EMULATE_SANITIZER STREQUAL "none")
  if(LEVIN_EMULATE_SANITIZER STREQUAL "address")
    set(sanitizers -fsanitize=address,alignment)
    set(LEVIN_WATCHED ${sanitizers} -fno-sanitize-recover=alignment)
  elseif(LEVIN_EMULATE_SANITIZER STREQUAL "memory")
    # Only memory that the emulator marks counts as uninitialised. Calls in the place of inlined checks are what it wraps.
    set(sanitizers -fsanitize=memory)
    set(LEVIN_WATCHED ${sanitizers} -fsanitize-memory-track-origins=1 -fno-sanitize-memory-param-retval
      -fno-sanitize-memory-use-after-dtor
      "SHELL:-mllvm -msan-poison-stack=0" "SHELL:-mllvm -msan-poison-undef=0"
      "SHELL:-mllvm -msan-instrumentation-with-call-threshold=0")
  else()
    set(sanitizers -fsanitize=thread)
    set(LEVIN_WATCHED ${sanitizers})
    # The thread sanitizer cannot see how threads of code that it does not watch wait for each other.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/core/src/parallel.cpp" DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES COMPILE_DEFINITIONS LEVIN_SERIAL=1)
  endif()
  levin_sanitizer_macros(macros "${sanitizers}")
  list(TRANSFORM macros PREPEND -D)
  list(APPEND LEVIN_WATCHED ${macros} ${LEVIN_LITTLE_OPTIMISED} -g1 -fno-omit-frame-pointer)
  add_link_options(${sanitizers})
endif()
# The same for single source files, whose options know no SHELL:.
list(TRANSFORM LEVIN_WATCHED REPLACE "^SHELL:([^ ]+) (.+)" "\\1;\\2" OUTPUT_VARIABLE LEVIN_WATCHED_FILE)

# For nvcc: kernels without tensor-core code are the same PTX for both machines, which saves a fifth of their compile
# time; the families that are tuned for each machine are compiled for each.
set(LEVIN_CUDA_ONE_PTX "--generate-code=arch=compute_80,code=[sm_80,sm_90a]")
set(LEVIN_CUDA_EACH "--generate-code=arch=compute_80,code=[sm_80]" "--generate-code=arch=compute_90a,code=[sm_90a]")
if(LEVIN_CUDA_CODE STREQUAL "sm_90a")
  set(LEVIN_CUDA_ONE_PTX "--generate-code=arch=compute_90a,code=[sm_90a]")
  set(LEVIN_CUDA_EACH "${LEVIN_CUDA_ONE_PTX}")
endif()
set(LEVIN_CUDA_TUNED "/cuda/(attention|conv|hgemm|matmul|sgemm|vendor)/")

# levin_cuda_batches(<list> <dir> [LADDERS]) lists the compile units of a module's kernels: batches of up to eight files, and
# the tuned families' files by themselves, since each of those takes long; or those of its ladders. A batch has every n-th
# file, so that families with many instances are in several batches.
function(levin_cuda_batches list dir)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${dir}/cuda/*.cu")
  if("LADDERS" IN_LIST ARGN)
    list(FILTER kernels INCLUDE REGEX "${LEVIN_LADDER_SOURCE}")
    set(${list} ${kernels} PARENT_SCOPE)
    return()
  endif()
  list(FILTER kernels EXCLUDE REGEX "${LEVIN_LADDER_SOURCE}")
  cmake_path(GET dir FILENAME module)
  set(units ${kernels})
  set(batched "")
  if(LEVIN_UNITY)
    list(FILTER units INCLUDE REGEX "${LEVIN_CUDA_TUNED}")
    list(FILTER kernels EXCLUDE REGEX "${LEVIN_CUDA_TUNED}")
    set(batched ${kernels})
  endif()
  list(LENGTH batched count)
  math(EXPR most "(${count} + 7) / 8")
  set(batches "")
  set(number 0)
  foreach(kernel IN LISTS batched)
    math(EXPR number "${number} % ${most} + 1")
    set(batch "${module}/cuda/${module}_${number}.cu")
    list(APPEND batches "${batch}")
    string(APPEND "text_of_${batch}" "#include \"${kernel}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES batches)
  foreach(batch IN LISTS batches)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/batches/${batch}" CONTENT "${text_of_${batch}}") # if it has changed
    list(APPEND units "${PROJECT_BINARY_DIR}/batches/${batch}")
  endforeach()
  set(${list} ${units} PARENT_SCOPE)
endfunction()

# levin_cuda_sources(<list> <dir> [LADDERS]) adds a module's CUDA sources, or its ladders, for nvcc and takes away what stands
# in for them.
function(levin_cuda_sources list dir)
  if(NOT LEVIN_CUDA STREQUAL "ON")
    return()
  endif()
  list(FILTER ${list} EXCLUDE REGEX "/cuda_absent\\.cpp$")
  levin_cuda_batches(kernels "${dir}" ${ARGN})
  set(host "")
  if(NOT ARGN)
    file(GLOB_RECURSE host CONFIGURE_DEPENDS "${dir}/cuda/*.cpp")
  endif()
  foreach(kernel IN LISTS kernels)
    set(code "${LEVIN_CUDA_ONE_PTX}")
    if(kernel MATCHES "${LEVIN_CUDA_TUNED}")
      set(code "${LEVIN_CUDA_EACH}")
    endif()
    set_property(SOURCE "${kernel}" DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTY COMPILE_OPTIONS "${code}")
  endforeach()
  set(${list} ${${list}} ${kernels} ${host} PARENT_SCOPE)
endfunction()

# levin_emulated(<module> <library>) makes levin_<module>_emulated: the module's CUDA sources, compiled for the emulator.
# A program that links it has CUDA kernels; the library itself is the same with and without it.
function(levin_emulated module library)
  levin_cuda_batches(kernels "${PROJECT_SOURCE_DIR}/${module}")
  file(GLOB_RECURSE host CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${module}/cuda/*.cpp")
  levin_add_emulated(levin_${module}_emulated ${module} ${library} ${kernels} ${host})
  levin_batches(levin_${module}_emulated ${module}_cuda 24 ${host})
endfunction()

# levin_add_emulated(<target> <module> <library> <source>...) makes a library of CUDA sources, compiled for the emulator.
function(levin_add_emulated target module library)
  set(kernels ${ARGN})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++;-Wno-unknown-pragmas")
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${ARGN})
  levin_flags(${target})
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3") # with -O1 they compile 1.7 times as long and run no faster
    target_compile_options(${target} PRIVATE ${LEVIN_LEAST_OPTIMISED})
  endif()
  target_compile_options(${target} PRIVATE ${LEVIN_WATCHED})
  target_compile_definitions(${target} PRIVATE LEVIN_EMULATED=1)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${module}")
  target_link_libraries(${target} PUBLIC levin_emulator levin_${library} PRIVATE ${LEVIN_FMT} Threads::Threads)
  # Nearly every file of kernels includes these headers, which take half of the compile time of a small one.
  set(base "${PROJECT_SOURCE_DIR}/kernels/cuda/base")
  if(LEVIN_UNITY AND target STREQUAL "levin_kernels_emulated")
    target_precompile_headers(${target} PRIVATE ${base}/launch.h ${base}/scratch.h ${base}/warp.h <algorithm>)
  elseif(LEVIN_UNITY AND module STREQUAL "kernels")
    target_precompile_headers(${target} REUSE_FROM levin_kernels_emulated)
  endif()
endfunction()

# levin_ladders() makes levin_ladders: the lists of all rungs, and those that do not ship, for tests and benchmarks. With
# the emulator, the CUDA ladders are levin_ladders_emulated, for programs that link the kernels.
function(levin_ladders)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/cpu/*.cpp")
  list(FILTER sources INCLUDE REGEX "${LEVIN_LADDER_SOURCE}")
  levin_cuda_sources(sources "${PROJECT_SOURCE_DIR}/kernels" LADDERS)
  add_library(levin_ladders STATIC EXCLUDE_FROM_ALL ${sources})
  levin_flags(levin_ladders)
  set_target_properties(levin_ladders PROPERTIES CUDA_ARCHITECTURES OFF)
  target_include_directories(levin_ladders PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(levin_ladders PRIVATE EIGEN_MPL2_ONLY EIGEN_DONT_PARALLELIZE)
  target_link_libraries(levin_ladders PUBLIC levin_tensor PRIVATE levin_hwy ${LEVIN_FMT} Eigen3::Eigen)
  if(LEVIN_CUDA STREQUAL "ON") # without the library that they link
    add_custom_target(levin_ladders_cuda DEPENDS "$<FILTER:$<TARGET_OBJECTS:levin_ladders>,INCLUDE,/cuda/|_cuda_[0-9]>")
  endif()
  if(LEVIN_EMULATOR)
    levin_cuda_batches(kernels "${PROJECT_SOURCE_DIR}/kernels" LADDERS)
    levin_add_emulated(levin_ladders_emulated kernels tensor ${kernels})
  endif()
endfunction()

# levin_link_emulated(<program> <module>...) gives a program the CUDA kernels of these modules. All of their objects are
# linked: the tables of the operations refer to them weakly.
function(levin_link_emulated program)
  foreach(module IN LISTS ARGN)
    target_link_libraries(${program} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,levin_${module}_emulated>")
  endforeach()
endfunction()
