sgdph_lab_test(config config)
sgdph_lab_test(train run_folder sgdph_sample_data)
sgdph_lab_test(train trainer sgdph_sample_data)
sgdph_lab_test(study summary sgdph_sample_data)
