sgdph_lab_test(formats event_file)
sgdph_lab_test(formats formats sgdph_sample_data)
