foreach(stem engine memory report statistics)
  sgdph_lab_test(cost ${stem})
endforeach()
