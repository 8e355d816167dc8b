# What every target of the project shares.
function(sgdph_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  # Joined sources are no headers: their local types meet nowhere else.
  target_compile_options(${target} PRIVATE $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
  # It goes by types, and takes a table's entry for a part of the name it was looked up by.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(${target} PRIVATE -Wno-dangling-reference)
  endif()
  if(SGDPH_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(SGDPH_SANITIZE)
    # LibTorch carries no type information for some of its classes, which the vptr check would need.
    target_compile_options(${target} PRIVATE
      -fsanitize=${SGDPH_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${SGDPH_SANITIZE})
  endif()
endfunction()
