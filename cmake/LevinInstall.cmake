# install, find_package(levin) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/levin")
set(archives "")
foreach(library IN ITEMS tensor interop distributed train c)
  get_property(header_sets GLOBAL PROPERTY levin_${library}_header_sets)
  set(file_sets "")
  foreach(set IN LISTS header_sets)
    list(APPEND file_sets FILE_SET ${set} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endforeach()
  install(TARGETS levin_${library} EXPORT levin-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${file_sets})
  list(APPEND archives "liblevin_${library}.a")
endforeach()

# liblevin.a has the objects of all libraries, so that a program links one and need not know their order. It is what
# the installed levin::levin links; in this tree levin::levin links the others.
add_library(levin_archive STATIC $<TARGET_OBJECTS:levin_tensor> $<TARGET_OBJECTS:levin_interop>
  $<TARGET_OBJECTS:levin_distributed> $<TARGET_OBJECTS:levin_train> $<TARGET_OBJECTS:levin_c>)
set_target_properties(levin_archive PROPERTIES OUTPUT_NAME levin EXPORT_NAME archive LINKER_LANGUAGE CXX
  CUDA_ARCHITECTURES OFF)
target_include_directories(levin_archive INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_compile_features(levin_archive INTERFACE cxx_std_20)
target_link_options(levin_archive INTERFACE ${LEVIN_LINK_OPTIONS})
foreach(link IN LISTS LEVIN_DISTRIBUTED_LINKS LEVIN_SPDLOG LEVIN_TENSOR_LINKS)
  target_link_libraries(levin_archive INTERFACE "$<LINK_ONLY:${link}>")
endforeach()
if(LEVIN_CUDA STREQUAL "ON")
  target_link_libraries(levin_archive INTERFACE CUDA::cudart_static)
endif()
target_link_libraries(levin INTERFACE "$<INSTALL_INTERFACE:levin::archive>")
add_dependencies(levin_libraries levin_archive)
install(TARGETS levin levin_archive EXPORT levin-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
list(APPEND archives liblevin.a)
if(TARGET levin_c_shared)
  install(TARGETS levin_c_shared EXPORT levin-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
install(EXPORT levin-targets NAMESPACE levin:: DESTINATION "${package_dir}")

# levin-doctor says what Levin finds on a machine.
add_executable(levin_doctor tools/doctor/main.cpp)
set_target_properties(levin_doctor PROPERTIES OUTPUT_NAME levin-doctor)
levin_flags(levin_doctor)
target_compile_options(levin_doctor PRIVATE ${LEVIN_LEAST_OPTIMISED})
target_link_libraries(levin_doctor PRIVATE levin::levin)
if(LEVIN_STATIC)
  target_compile_definitions(levin_doctor PRIVATE LEVIN_STATIC=1)
endif()
if(LEVIN_CUDA STREQUAL "EMULATE")
  levin_link_emulated(levin_doctor kernels)
endif()
add_dependencies(levin_libraries levin_doctor)
install(TARGETS levin_doctor RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")

# Line tables serve whoever profiles this tree; they are two thirds of the archives. The time of an archive is kept, so
# that the next install knows that it has not changed.
find_program(LEVIN_STRIP NAMES "${CMAKE_STRIP}" strip)
if(LEVIN_STRIP AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(JOIN archives " " names)
  install(CODE "foreach(archive IN ITEMS ${names})
    execute_process(COMMAND \"${LEVIN_STRIP}\" --strip-debug --preserve-dates --enable-deterministic-archives
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/\${archive}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND \"${LEVIN_STRIP}\" --preserve-dates
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/levin-doctor\" COMMAND_ERROR_IS_FATAL ANY)")
endif()

configure_package_config_file(cmake/levin-config.cmake.in "${PROJECT_BINARY_DIR}/levin-config.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/levin-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/levin-config.cmake" "${PROJECT_BINARY_DIR}/levin-config-version.cmake"
  DESTINATION "${package_dir}")

# There are static libraries only, so all that they need stands in Libs, and --static makes no difference.
set(pc_libs "")
if(NOT LEVIN_STATIC)
  string(APPEND pc_libs " -lgloo -lspdlog -lfmt")
endif()
string(APPEND pc_libs " ${PNG_LIBRARY} ${JPEG_LIBRARY} ${ZLIB_LIBRARIES}") # by their paths, as -lz would take the shared one
if(LEVIN_OPENMP MATCHES "OpenMP::")
  string(APPEND pc_libs " ${OpenMP_CXX_FLAGS}")
elseif(LEVIN_OPENMP MATCHES "^-l")
  string(APPEND pc_libs " ${LEVIN_OPENMP}")
elseif(LEVIN_OPENMP)
  string(APPEND pc_libs " -l${LEVIN_OPENMP}")
endif()
if(LEVIN_CUDA STREQUAL "ON")
  string(APPEND pc_libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
list(JOIN LEVIN_LINK_OPTIONS " " pc_options)
string(REPLACE "LINKER:" "-Wl," pc_options "${pc_options}")
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix) # the package may be moved
configure_file(cmake/levin.pc.in "${PROJECT_BINARY_DIR}/levin.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/levin.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES LICENSE THIRD_PARTY.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/levin-dev")
install(FILES cmake/copyright DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/levin-dev")

# A Debian package: ./run install --deb, or cpack -G DEB in the build folder.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # of tests and examples, which are not packed
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME levin-dev)
set(CPACK_PACKAGE_CONTACT "Levin maintainers <maintainers@levin.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep-learning engine in C++20: static libraries and headers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Tensors, automatic differentiation, layers, optimizers, data loading, distributed
training and a Trainer, for find_package(levin) and pkg-config. levin-doctor says
what Levin finds on a machine.")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libpng-dev, libjpeg62-turbo-dev, zlib1g-dev")
if(NOT LEVIN_STATIC)
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libfmt-dev, libspdlog-dev, libgloo-dev, libstdc++6, libgcc-s1")
  if(LEVIN_THREADS STREQUAL "openmp")
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libgomp1")
  endif()
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, cmake, ninja-build, pkgconf")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "dataset-fashion-mnist")
include(CPack)
