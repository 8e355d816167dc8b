sgdph_lab_test(base escape)
sgdph_lab_test(base names)
sgdph_lab_test(base text)
sgdph_lab_test(base files)
