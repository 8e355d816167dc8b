# The CMake package (find_package(sgdph)) and the pkg-config file.
include(CMakePackageConfigHelpers)

set(SGDPH_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sgdph)
install(TARGETS sgdph EXPORT sgdphTargets)
install(DIRECTORY include/sgdph DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sgdphTargets NAMESPACE sgdph:: DESTINATION ${SGDPH_CMAKE_DIR})
configure_package_config_file(cmake/sgdphConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/sgdphConfig.cmake
  INSTALL_DESTINATION ${SGDPH_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sgdphConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sgdphConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sgdphConfigVersion.cmake
  cmake/SgdphTorch.cmake
  DESTINATION ${SGDPH_CMAKE_DIR})

list(TRANSFORM TORCH_INCLUDE_DIRS PREPEND "-I" OUTPUT_VARIABLE torch_flags)
list(JOIN torch_flags " " SGDPH_PC_CFLAGS)
get_filename_component(SGDPH_PC_TORCH_LIBDIR "${TORCH_LIBRARY}" DIRECTORY)
# A LibTorch outside the linker's folders is not found at run time unless the program says where.
if(NOT SGDPH_PC_TORCH_LIBDIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  set(SGDPH_PC_RPATH "-Wl,-rpath,${SGDPH_PC_TORCH_LIBDIR}")
endif()
# Relative to the file itself, so that it is right wherever the package is installed to.
file(RELATIVE_PATH SGDPH_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/sgdph.pc.in ${CMAKE_CURRENT_BINARY_DIR}/sgdph.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sgdph.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
