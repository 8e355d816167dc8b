foreach(stem comparison curves figure reference tables)
  sgdph_lab_test(report ${stem} sgdph_lab_train)
endforeach()
