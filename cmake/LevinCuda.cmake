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

# levin_cuda_sources(<list> <dir>) adds a module's CUDA sources, or takes away what stands in for them.
function(levin_cuda_sources list dir)
  if(NOT LEVIN_HAS_CUDA)
    return()
  endif()
  list(FILTER ${list} EXCLUDE REGEX "/cuda_absent\\.cpp$")
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${dir}/cuda/*.cu")
  file(GLOB_RECURSE host CONFIGURE_DEPENDS "${dir}/cuda/*.cpp")
  if(LEVIN_CUDA STREQUAL "EMULATE")
    set_source_files_properties(${kernels} DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTIES
      LANGUAGE CXX COMPILE_OPTIONS "-x;c++;-Wno-unknown-pragmas")
  endif()
  set(${list} ${${list}} ${kernels} ${host} PARENT_SCOPE)
endfunction()
