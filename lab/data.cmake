# The data sets and the loader.
find_package(PkgConfig REQUIRED)
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
sgdph_room(data
  SOURCES
    buffer_pool.cpp
    byte_images.cpp
    cifar.cpp
    crop.cpp
    fashion_mnist.cpp
    image_folder.cpp
    jpeg.cpp
    jpeg_images.cpp
    loader.cpp
    mini_imagenet.cpp
    registry.cpp
    resize.cpp
  LINK sgdph_lab_formats sgdph::sgdph PkgConfig::TURBOJPEG Threads::Threads)
