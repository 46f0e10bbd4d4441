# Finds the packages that the libraries need. levin-config.cmake looks for the same packages again on the user's side.

set(LEVIN_APT "Debian: ./run setup, or apt-get install g++ cmake ninja-build libhwy-dev libeigen3-dev libfmt-dev \
zlib1g-dev libpng-dev libjpeg62-turbo-dev libcli11-dev nlohmann-json3-dev libspdlog-dev libgloo-dev")
macro(levin_need package)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found. ${LEVIN_APT}")
  endif()
endmacro()

if(LEVIN_THREADS STREQUAL "openmp")
  levin_need(OpenMP COMPONENTS CXX)
endif()
find_package(Threads REQUIRED)
levin_need(hwy CONFIG) # its headers; what its library does for the dispatch is in kernels/cpu/targets.cpp
add_library(levin_hwy INTERFACE)
target_include_directories(levin_hwy SYSTEM INTERFACE
  "$<TARGET_PROPERTY:hwy::hwy,INTERFACE_INCLUDE_DIRECTORIES>")
levin_need(Eigen3 CONFIG)
levin_need(fmt CONFIG)
# A static build takes fmt and spdlog from their headers, so that programs need neither library, nor their packages.
set(LEVIN_FMT fmt::fmt)
if(LEVIN_STATIC)
  set(LEVIN_FMT $<BUILD_INTERFACE:fmt::fmt-header-only>)
endif()
set(ZLIB_USE_STATIC_LIBS ON) # so that a user's program needs no libz.so
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  unset(ZLIB_USE_STATIC_LIBS)
  unset(ZLIB_LIBRARY CACHE)
  levin_need(ZLIB)
endif()
# Static as well: only programs that read or write images link them.
find_library(PNG_LIBRARY_RELEASE NAMES libpng16.a libpng.a)
find_library(JPEG_LIBRARY_RELEASE NAMES libjpeg.a)
levin_need(PNG)
levin_need(JPEG)
levin_need(CLI11 CONFIG)
levin_need(nlohmann_json CONFIG)
levin_need(spdlog CONFIG)
set(LEVIN_SPDLOG spdlog::spdlog)
if(LEVIN_STATIC)
  add_library(levin_spdlog INTERFACE) # spdlog::spdlog_header_only would link the shared library of fmt
  target_include_directories(levin_spdlog SYSTEM INTERFACE
    "$<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>")
  target_compile_definitions(levin_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  set(LEVIN_SPDLOG $<BUILD_INTERFACE:levin_spdlog>)
else()
  levin_need(Gloo CONFIG)
endif()

# The OpenMP library that programs link, if threads are OpenMP's. Objects of g++ need libgomp whatever compiles the
# program: clang++ finds it too, but its own -fopenmp would ask for libomp.
set(LEVIN_OPENMP "")
if(LEVIN_THREADS STREQUAL "openmp")
  set(LEVIN_OPENMP $<LINK_ONLY:OpenMP::OpenMP_CXX>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(LEVIN_OPENMP gomp)
    if(LEVIN_STATIC)
      set(LEVIN_OPENMP -l:libgomp.a)
    endif()
  elseif(LEVIN_STATIC)
    message(FATAL_ERROR "LEVIN_STATIC=ON with ${CMAKE_CXX_COMPILER_ID}: there is no static OpenMP library. Configure "
      "with -DCMAKE_CXX_COMPILER=g++, or without -DLEVIN_THREADS=openmp.")
  endif()
endif()

# The packages whose libraries programs link.
set(LEVIN_TENSOR_LINKS ${LEVIN_FMT} PNG::PNG JPEG::JPEG ZLIB::ZLIB Threads::Threads ${LEVIN_OPENMP})
set(LEVIN_DISTRIBUTED_LINKS "")
if(NOT LEVIN_STATIC)
  set(LEVIN_DISTRIBUTED_LINKS gloo)
endif()
set(LEVIN_LINK_OPTIONS LINKER:--gc-sections)
if(LEVIN_STATIC)
  list(APPEND LEVIN_LINK_OPTIONS -static-libstdc++ -static-libgcc)
endif()

# Called when the libraries exist.
function(levin_link_dependencies)
  target_link_libraries(levin_tensor PRIVATE ${LEVIN_TENSOR_LINKS} $<BUILD_INTERFACE:levin_hwy>
    $<BUILD_INTERFACE:Eigen3::Eigen> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
  target_compile_definitions(levin_tensor PRIVATE EIGEN_MPL2_ONLY EIGEN_DONT_PARALLELIZE)
  target_link_options(levin_tensor INTERFACE ${LEVIN_LINK_OPTIONS})
  if(LEVIN_THREADS STREQUAL "openmp")
    set_source_files_properties("${PROJECT_SOURCE_DIR}/core/src/parallel.cpp" DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}" COMPILE_DEFINITIONS LEVIN_OPENMP=1
      SKIP_PRECOMPILE_HEADERS ON) # which have other options
  elseif(LEVIN_THREADS STREQUAL "serial")
    set_source_files_properties("${PROJECT_SOURCE_DIR}/core/src/parallel.cpp" DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES COMPILE_DEFINITIONS LEVIN_SERIAL=1)
  endif()
  if(LEVIN_CUDA STREQUAL "ON")
    target_link_libraries(levin_tensor PUBLIC CUDA::cudart_static)
  endif()
  foreach(library IN ITEMS interop distributed train c)
    target_link_libraries(levin_${library} PRIVATE ${LEVIN_FMT} ZLIB::ZLIB Threads::Threads
      $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
  endforeach()
  target_link_libraries(levin_distributed PRIVATE ${LEVIN_DISTRIBUTED_LINKS} $<BUILD_INTERFACE:levin_hwy>)
  target_link_libraries(levin_train PRIVATE ${LEVIN_SPDLOG} $<BUILD_INTERFACE:CLI11::CLI11>)
endfunction()
