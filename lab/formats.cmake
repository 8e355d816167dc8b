# The file formats: bytes in, checked structures out; no LibTorch, so that they are fuzzed alone.
set(formats_sources idx.cpp cifar.cpp csv.cpp event_file.cpp)
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/formats/checkpoint_file.cpp)
  list(APPEND formats_sources checkpoint_file.cpp)
endif()
sgdph_room(formats SOURCES ${formats_sources} LINK sgdph_lab_base ZLIB::ZLIB nlohmann_json::nlohmann_json)
