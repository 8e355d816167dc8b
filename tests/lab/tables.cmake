sgdph_lab_test(tables ranking)
sgdph_lab_test(tables statistics)
