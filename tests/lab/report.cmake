foreach(stem curves figure reference tables task)
  sgdph_lab_test(report ${stem} sgdph_lab_train)
endforeach()
