# What every target of the project shares.
function(sgdph_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter)
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
