foreach(stem engine memory report)
  sgdph_lab_test(cost ${stem})
endforeach()
