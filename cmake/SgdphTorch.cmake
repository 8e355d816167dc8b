# LibTorch as sgdph needs it: one, not parts of two. Our own build reads this file, and so does the installed package.

# Refuses a build folder that was begun with another LibTorch than CMAKE_PREFIX_PATH names: CMake would go on with the first.
function(sgdph_refuse_changed_torch)
  if(NOT Torch_DIR)
    return()
  endif()
  string(REPLACE ":" ";" folders "$ENV{CMAKE_PREFIX_PATH}")
  find_path(wanted TorchConfig.cmake PATHS ${CMAKE_PREFIX_PATH} ${folders}
    PATH_SUFFIXES share/cmake/Torch lib/cmake/Torch ${CMAKE_INSTALL_LIBDIR}/cmake/Torch NO_DEFAULT_PATH NO_CACHE)
  if(NOT wanted)
    return()
  endif()
  file(REAL_PATH "${wanted}" wanted)
  file(REAL_PATH "${Torch_DIR}" begun)
  if(NOT wanted STREQUAL begun)
    message(FATAL_ERROR "sgdph: this build folder was begun with the LibTorch of ${begun}, and CMAKE_PREFIX_PATH names that of "
      "${wanted}; use another build folder, or remove this one")
  endif()
endfunction()

# Refuses a LibTorch put together from two. Its package looks for its libraries with find_library, which tries the folders of
# the system and of the cache before its own.
function(sgdph_refuse_mixed_torch)
  file(REAL_PATH "${TORCH_INSTALL_PREFIX}" root)
  foreach(library "${TORCH_LIBRARY}" "${c10_LIBRARY}")
    if(NOT EXISTS "${library}")
      continue()
    endif()
    file(REAL_PATH "${library}" file)
    cmake_path(IS_PREFIX root "${file}" inside)
    if(root STREQUAL "/usr" AND file MATCHES "^/usr/local/")
      set(inside FALSE)
    endif()
    if(NOT inside)
      message(FATAL_ERROR "sgdph: two LibTorches are mixed, the package and headers of LibTorch ${Torch_VERSION} in ${root} with the "
        "library ${file} of another; put ${root} itself into CMAKE_PREFIX_PATH, not a folder inside it, and use a new build folder")
    endif()
  endforeach()
endfunction()

# Refuses to use an sgdph with another LibTorch than it was built with: their classes differ.
function(sgdph_refuse_other_torch built_version built_root)
  string(REGEX MATCH "^[0-9]+[.][0-9]+" built "${built_version}")
  string(REGEX MATCH "^[0-9]+[.][0-9]+" here "${Torch_VERSION}")
  if(NOT built STREQUAL here)
    message(FATAL_ERROR "sgdph: this package was built with LibTorch ${built_version} (${built_root}), and this project finds LibTorch "
      "${Torch_VERSION} (${TORCH_INSTALL_PREFIX}); name the first in CMAKE_PREFIX_PATH, or build sgdph with the second")
  endif()
endfunction()

# The C++ standard that LibTorch's headers want, as it says itself; our own want 17.
function(sgdph_cxx_standard variable)
  get_target_property(standard torch CXX_STANDARD)
  if(NOT standard OR standard LESS 17)
    set(standard 17)
  endif()
  set(${variable} ${standard} PARENT_SCOPE)
endfunction()
