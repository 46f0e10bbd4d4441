# install, find_package(levin) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/levin")
foreach(library IN ITEMS tensor interop distributed train c)
  get_property(header_sets GLOBAL PROPERTY levin_${library}_header_sets)
  set(file_sets "")
  foreach(set IN LISTS header_sets)
    list(APPEND file_sets FILE_SET ${set} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endforeach()
  install(TARGETS levin_${library} EXPORT levin-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${file_sets})
endforeach()
install(TARGETS levin EXPORT levin-targets)
install(TARGETS levin_c_shared EXPORT levin-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT levin-targets NAMESPACE levin:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/levin-config.cmake.in "${PROJECT_BINARY_DIR}/levin-config.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/levin-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/levin-config.cmake" "${PROJECT_BINARY_DIR}/levin-config-version.cmake"
  DESTINATION "${package_dir}")

# The static libraries in the order that a linker wants them, the user before the used.
set(pc_libs "")
foreach(library IN ITEMS train distributed interop tensor)
  get_target_property(type levin_${library} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    string(APPEND pc_libs " -llevin_${library}")
  endif()
endforeach()
set(pc_cflags "")
if(LEVIN_THREADS STREQUAL "openmp")
  set(pc_threads "${OpenMP_CXX_FLAGS}")
else()
  set(pc_threads "-pthread")
  set(pc_cflags "-DLEVIN_SERIAL=1")
endif()
set(pc_zlib "${ZLIB_LIBRARIES}") # by its path, as -lz would take the shared library
set(pc_images "${PNG_LIBRARY} ${JPEG_LIBRARY} -lm")
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix) # the package may be moved
configure_file(cmake/levin.pc.in "${PROJECT_BINARY_DIR}/levin.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/levin.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
