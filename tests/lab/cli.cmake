# The command, driven as a user would. In Python: these tests start and kill processes and read files, and need no build.
find_program(SGDPH_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(SGDPH_PYTHON python3 REQUIRED)
add_executable(sgdph_write_images support/write_samples.cpp)
target_link_libraries(sgdph_write_images PRIVATE sgdph_sample_data)
sgdph_test_settings(sgdph_write_images)

foreach(stem commands input inspect report reproduce resume tensorboard)
  add_test(NAME cli.${stem} COMMAND ${SGDPH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/${stem}_test.py)
  set_tests_properties(cli.${stem} PROPERTIES LABELS cli TIMEOUT 1200 ENVIRONMENT
    "SGDPH=$<TARGET_FILE:sgdph_cli>;SGDPH_SAMPLE_IMAGES=$<TARGET_FILE:sgdph_write_images>;PYTHONDONTWRITEBYTECODE=1;ASAN_OPTIONS=detect_container_overflow=0")
endforeach()
