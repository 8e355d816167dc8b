# Uses sgdph as a stranger would: WAY is find_package (of the installed package), add_subdirectory or pkg_config. The stranger
# names no C++ standard: the package brings STANDARD, which its LibTorch wants.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(ENV{CCACHE_NOHASHDIR} 1)  # as in the presets, so that the library's objects are found again
set(prefix ${WORK_DIR}/prefix)

set(least 201703)
if(STANDARD GREATER 20)
  set(least 202100)
elseif(STANDARD GREATER 17)
  set(least 202002)
endif()
file(WRITE ${WORK_DIR}/standard.h "static_assert(__cplusplus >= ${least}L, \"the package did not bring C++${STANDARD}\");\n")
file(WRITE ${WORK_DIR}/standard.cmake
  "cmake_language(DEFER CALL target_compile_options quickstart PRIVATE \"SHELL:-include ${WORK_DIR}/standard.h\")\n")

if(NOT WAY STREQUAL "add_subdirectory")
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
endif()

if(WAY STREQUAL "pkg_config")
  # The file lies under lib, lib64 or lib/<architecture>.
  file(GLOB_RECURSE file ${prefix}/*/sgdph.pc)
  get_filename_component(pkgconfig_dir ${file} DIRECTORY)
  get_filename_component(library_dir ${pkgconfig_dir} DIRECTORY)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pkgconfig_dir}
      pkg-config --cflags --libs sgdph
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${COMPILER} -include ${WORK_DIR}/standard.h ${SOURCE_DIR}/examples/quickstart.cpp -o ${WORK_DIR}/quickstart ${flags}
    -Wl,-rpath,${library_dir} -Wl,--no-as-needed)
  run(${WORK_DIR}/quickstart)
  return()
endif()

set(arguments -G Ninja -S ${SOURCE_DIR}/examples -B ${WORK_DIR}/build
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_BUILD_TYPE=RelWithDebInfo
  "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=${FLAGS}" -DCMAKE_UNITY_BUILD=${JOINED} -DCMAKE_UNITY_BUILD_BATCH_SIZE=${JOINED_SIZE}
  -DCMAKE_PROJECT_sgdph_examples_INCLUDE=${WORK_DIR}/standard.cmake)
if(WAY STREQUAL "find_package")
  set(ENV{CMAKE_PREFIX_PATH} "${prefix}:${PREFIX_PATH}")  # an argument would be parted at its semicolon
else()
  list(APPEND arguments "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}" -DSGDPH_SOURCE_DIR=${SOURCE_DIR}
    -DSGDPH_WARNINGS_AS_ERRORS=ON)
endif()
run(${CMAKE_COMMAND} ${arguments})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --target quickstart)
run(${WORK_DIR}/build/quickstart)
