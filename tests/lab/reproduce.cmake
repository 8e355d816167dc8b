foreach(stem cells experiment paper result)
  sgdph_lab_test(reproduce ${stem} sgdph_sample_data sgdph_lab_train)
endforeach()
