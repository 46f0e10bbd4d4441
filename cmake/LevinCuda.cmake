# The CUDA flavours. In EMULATE the host compiler takes the kernels' sources, with the emulator in the toolkit's place.

if(LEVIN_CUDA STREQUAL "ON")
  # CMake 3.25 does not know nvcc's C++20, and wants the architectures before the language.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real)
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
  else()
    set(sanitizers -fsanitize=thread)
    set(LEVIN_WATCHED ${sanitizers})
    # The thread sanitizer cannot see how OpenMP's threads wait for each other.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/core/src/parallel.cpp" DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES COMPILE_DEFINITIONS LEVIN_SERIAL=1)
  endif()
  # Optimised less, g++ 12 sees uses of uninitialised variables where there are none.
  list(APPEND LEVIN_WATCHED -O1 -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  add_link_options(${sanitizers})
endif()

# For nvcc: kernels without tensor-core code are the same PTX for both machines, which saves a fifth of their compile
# time; the families that are tuned for each machine are compiled for each.
set(LEVIN_CUDA_ONE_PTX "--generate-code=arch=compute_80,code=[sm_80,sm_90a]")
set(LEVIN_CUDA_EACH "--generate-code=arch=compute_80,code=[sm_80]" "--generate-code=arch=compute_90a,code=[sm_90a]")
set(LEVIN_CUDA_TUNED "/cuda/(attention|conv|hgemm|matmul|sgemm)/")

# levin_cuda_sources(<list> <dir>) adds a module's CUDA sources, or takes away what stands in for them.
function(levin_cuda_sources list dir)
  if(NOT LEVIN_HAS_CUDA)
    return()
  endif()
  list(FILTER ${list} EXCLUDE REGEX "/cuda_absent\\.cpp$")
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${dir}/cuda/*.cu")
  file(GLOB_RECURSE host CONFIGURE_DEPENDS "${dir}/cuda/*.cpp")
  if(LEVIN_CUDA STREQUAL "EMULATE")
    set(options -x c++ -Wno-unknown-pragmas)
    if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3") # by which kernels would compile half as long again
      list(APPEND options -O2)
    endif()
    set_source_files_properties(${kernels} DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTIES
      LANGUAGE CXX COMPILE_OPTIONS "${options};${LEVIN_WATCHED}")
    set_source_files_properties(${host} DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTIES COMPILE_OPTIONS "${LEVIN_WATCHED}")
  else()
    foreach(kernel IN LISTS kernels)
      set(code "${LEVIN_CUDA_ONE_PTX}")
      if(kernel MATCHES "${LEVIN_CUDA_TUNED}")
        set(code "${LEVIN_CUDA_EACH}")
      endif()
      set_property(SOURCE "${kernel}" DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTY COMPILE_OPTIONS "${code}")
    endforeach()
  endif()
  set(${list} ${${list}} ${kernels} ${host} PARENT_SCOPE)
endfunction()
