add_library(sgdph_test_http STATIC support/http_server.cpp)
target_include_directories(sgdph_test_http PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_features(sgdph_test_http PUBLIC cxx_std_17)
target_link_libraries(sgdph_test_http PUBLIC Threads::Threads)
sgdph_test_settings(sgdph_test_http)

set_source_files_properties(lab/fetch/fetch_test.cpp PROPERTIES
  COMPILE_DEFINITIONS SGDPH_SHARED_DATA_DIR="${PROJECT_SOURCE_DIR}/../shared/data" SKIP_PRECOMPILE_HEADERS ON)
sgdph_lab_test(fetch download sgdph_test_http)
sgdph_lab_test(fetch unpack sgdph_sample_data)
sgdph_lab_test(fetch fetch sgdph_test_http sgdph_sample_data)
