# The CUDA flavours. In EMULATE the host compiler takes the kernels' sources, with the emulator in the toolkit's place.

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
