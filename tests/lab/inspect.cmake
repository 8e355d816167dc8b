foreach(stem blocks estimates hessian_block report)
  sgdph_lab_test(inspect ${stem})
endforeach()
