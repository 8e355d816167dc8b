foreach(stem cells experiment paper ranking result)
  sgdph_lab_test(reproduce ${stem} sgdph_sample_data)
endforeach()
