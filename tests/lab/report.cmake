foreach(stem curves figure reference task)
  sgdph_lab_test(report ${stem})
endforeach()
