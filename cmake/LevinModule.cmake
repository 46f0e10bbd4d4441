# levin_module(<name> LIBRARY <library> [FOLDERS ...]) collects one folder's headers and sources, or those of some folders
# in it, for modules that are divided between libraries;
# levin_library(<library> [USES ...] [PRECOMPILED ...]) makes one static library of all folders that named it; its
# sources share the precompiled headers.

# The rungs that do not ship and the lists of all rungs, which only tests and benchmarks link (levin_ladders).
set(LEVIN_LADDER_SOURCE "/ladder[^/]*\\.(cpp|cu)$")

include(LevinCuda)

# levin_batches(<target> <name> <size> <source>...) compiles sources in batches (unity builds) of `size` files, so that
# headers are read once a batch. Highway's files have batches of their own, and what the kernels for the emulator or
# nvcc's files replace stays alone, so that the batches with and without nvcc are the same. LEVIN_UNITY=OFF compiles every
# file by itself. The sources belong to the folder of the CMakeLists.txt that calls.
function(levin_batches target name size)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LEVIN_UNITY} UNITY_BUILD_MODE GROUP)
  if(LEVIN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # a class with a member of a type local to its own file
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  set(count 0)
  set(simd "")
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" includes_itself REGEX "foreach_target\\.h" LIMIT_COUNT 1)
    if(includes_itself)
      list(APPEND simd "${source}")
    elseif(source MATCHES "\\.cpp$" AND NOT source MATCHES "/cu(da|b)_absent\\.cpp$")
      math(EXPR batch "${count} / ${size} + 1")
      math(EXPR count "${count} + 1")
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${name}_${batch}")
    endif()
  endforeach()
  if(LEVIN_UNITY AND simd)
    levin_simd_batches(${target} ${name} ${simd})
  endif()
endfunction()

# levin_simd_batches(<target> <name> <source>...) compiles Highway's files four at a time, which saves reading Highway
# for every instruction set. A batch includes itself once for each of them, as such a file does alone; the files' own
# HWY_TARGET_INCLUDE has no effect there, because foreach_target.h is included already.
function(levin_simd_batches target name)
  list(LENGTH ARGN count)
  math(EXPR batches "(${count} + 3) / 4")
  foreach(batch RANGE 1 ${batches})
    set(file "${CMAKE_CURRENT_BINARY_DIR}/batches/simd_${name}_${batch}.cpp")
    set(itself "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${file}\"\n")
    set(members "")
    set(index ${batch})
    foreach(source IN LISTS ARGN) # every n-th file, so that one module's files are in several batches
      math(EXPR index "(${index} + ${batches} - 1) % ${batches}")
      if(index EQUAL 0)
        string(APPEND members "#include \"${source}\"\n")
        set_property(SOURCE "${source}" PROPERTY HEADER_FILE_ONLY ON)
        set_property(SOURCE "${source}" PROPERTY LEVIN_SIMD_BATCH "${file}")
      endif()
    endforeach()
    if(members)
      file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT
        "#include \"kernels/cpu/targets.h\"\n${itself}#include <hwy/foreach_target.h>\n${members}${itself}")
      target_sources(${target} PRIVATE "${file}")
      set_property(SOURCE "${file}" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# levin_set_on_sources(<library> <module> <property> <value>) appends to a property of a module's sources. A source that
# has properties of its own would leave its batch, so those of a batch are set on the file that CMake generates for it.
function(levin_set_on_sources library module property value)
  get_property(sources GLOBAL PROPERTY levin_${module}_sources)
  set(files "")
  foreach(source IN LISTS sources)
    get_property(batch SOURCE "${source}" PROPERTY UNITY_GROUP)
    get_property(simd_batch SOURCE "${source}" PROPERTY LEVIN_SIMD_BATCH)
    if(simd_batch)
      set(source "${simd_batch}")
    elseif(LEVIN_UNITY AND batch)
      set(source "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/levin_${library}.dir/Unity/unity_${batch}_cxx.cxx")
    endif()
    list(APPEND files "${source}")
  endforeach()
  list(REMOVE_DUPLICATES files)
  set_property(SOURCE ${files} APPEND PROPERTY ${property} ${value})
endfunction()

function(levin_module name)
  cmake_parse_arguments(arg "" "LIBRARY" "FOLDERS" ${ARGN})
  set(dir "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT arg_FOLDERS)
    set(arg_FOLDERS include src cpu)
  endif()
  list(TRANSFORM arg_FOLDERS REPLACE "(.+)" "${dir}/\\1/*.cpp" OUTPUT_VARIABLE source_patterns)
  set(headers "")
  if("include" IN_LIST arg_FOLDERS)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${dir}/include/*.h")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${source_patterns})
  list(FILTER sources EXCLUDE REGEX "${LEVIN_LADDER_SOURCE}")
  if(LEVIN_STATIC)
    list(FILTER sources EXCLUDE REGEX "/gloo_transport\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/gloo_absent\\.cpp$")
  endif()
  levin_cuda_sources(sources "${dir}")
  set_property(GLOBAL APPEND PROPERTY levin_${arg_LIBRARY}_modules ${name})
  set_property(GLOBAL PROPERTY levin_${name}_headers "${headers}")
  set_property(GLOBAL PROPERTY levin_${name}_sources "${sources}")
  set_property(GLOBAL PROPERTY levin_${name}_dir "${dir}")
endfunction()

function(levin_library library)
  cmake_parse_arguments(arg "" "" "USES;PRECOMPILED" ${ARGN})
  set(target levin_${library})
  get_property(modules GLOBAL PROPERTY levin_${library}_modules)

  set(all_sources "")
  foreach(module IN LISTS modules)
    get_property(sources GLOBAL PROPERTY levin_${module}_sources)
    list(APPEND all_sources ${sources})
  endforeach()
  if(all_sources)
    add_library(${target} STATIC ${all_sources})
    set(scope PUBLIC)
    levin_flags(${target})
    # A section for each function and object, so that a program's linker leaves out what the program does not use.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections -fdata-sections>)
    # The shared library of the C interface contains these archives.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
    if(LEVIN_UNITY)
      target_precompile_headers(${target} PRIVATE ${arg_PRECOMPILED})
    elseif(LEVIN_FOREIGN_HEADERS) # half of the time that a file takes
      target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <filesystem> <fstream>
        <functional> <map> <memory> <mutex> <optional> <random> <ranges> <set> <span> <sstream> <string> <thread>
        <unordered_map> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
    endif()
    foreach(module IN LISTS modules)
      get_property(sources GLOBAL PROPERTY levin_${module}_sources)
      set(cuda ${sources}) # batches of their own, as for the emulator
      list(FILTER cuda INCLUDE REGEX "/${module}/cuda/")
      list(FILTER sources EXCLUDE REGEX "/${module}/cuda/")
      set(size 24)
      if(module STREQUAL "kernels") # their loops take longer than reading headers
        set(size 12)
      endif()
      levin_batches(${target} ${module} ${size} ${sources})
      levin_batches(${target} ${module}_cuda 24 ${cuda})
    endforeach()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(levin::${library} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${library} VERIFY_INTERFACE_HEADER_SETS ON
    CUDA_ARCHITECTURES OFF) # levin_cuda_sources chooses them by family
  target_compile_features(${target} ${scope} cxx_std_20)
  foreach(used IN LISTS arg_USES)
    target_link_libraries(${target} ${scope} levin_${used})
  endforeach()

  # One header set a module, so that the installed tree reads like the source tree.
  set(header_sets "")
  foreach(module IN LISTS modules)
    get_property(headers GLOBAL PROPERTY levin_${module}_headers)
    get_property(dir GLOBAL PROPERTY levin_${module}_dir)
    set(bases "${dir}/include")
    if(module STREQUAL "core")
      set(generated "${PROJECT_BINARY_DIR}/generated/include")
      configure_file("${PROJECT_SOURCE_DIR}/cmake/config.h.in" "${generated}/levin/core/config.h")
      configure_file("${PROJECT_SOURCE_DIR}/cmake/simd_build.h.in" "${generated}/levin/core/simd_build.h")
      list(APPEND headers "${generated}/levin/core/config.h")
      list(APPEND bases "${generated}")
    endif()
    if(headers)
      target_sources(${target} ${scope} FILE_SET ${module} TYPE HEADERS BASE_DIRS ${bases} FILES ${headers})
      list(APPEND header_sets ${module})
    endif()
    if(all_sources)
      # The tree's root serves Highway, which includes a kernel file again for every target by its path.
      target_include_directories(${target} PRIVATE "${dir}" "${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY ${target}_header_sets "${header_sets}")
  if(LEVIN_CUDA STREQUAL "ON" AND all_sources) # the part of the library that other flavours do not compile
    add_custom_target(${target}_cuda DEPENDS "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,kernels/cuda/|_cuda_[0-9]>")
  endif()
endfunction()
