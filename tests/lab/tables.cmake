foreach(stem document plot ranking statistics table text)
  sgdph_lab_test(tables ${stem})
endforeach()
