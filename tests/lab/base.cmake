sgdph_lab_test(base words)
