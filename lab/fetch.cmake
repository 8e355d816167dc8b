# Downloads, checks and unpacks data sets.
find_package(CURL REQUIRED)
find_package(LibArchive REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
sgdph_room(fetch
  SOURCES
    digest.cpp
    download.cpp
    fetch.cpp
    http_request.cpp
    lock.cpp
    manifest.cpp
    part_file.cpp
    progress.cpp
    sources.cpp
    unpack.cpp
    verify.cpp
  LINK sgdph_lab_data nlohmann_json::nlohmann_json CURL::libcurl LibArchive::LibArchive OpenSSL::Crypto)
