# Small data sets for the tests of every room; optimised, since it encodes thousands of images.
add_library(sgdph_sample_data STATIC support/sample_data.cpp)
target_include_directories(sgdph_sample_data PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(sgdph_sample_data PUBLIC sgdph_lab_data sgdph_lab_base)
sgdph_settings(sgdph_sample_data)

foreach(stem byte_images jpeg image_sets loader)
  sgdph_lab_test(data ${stem} sgdph_sample_data)
endforeach()
# Samples of real data, tested when they are there.
set_source_files_properties(lab/data/image_sets_test.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
  COMPILE_DEFINITIONS SGDPH_SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared/data")
