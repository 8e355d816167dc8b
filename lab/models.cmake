sgdph_room(models
  SOURCES layers.cpp pickle.cpp registry.cpp resnet.cpp state_dict.cpp torch_file.cpp vgg.cpp zip_file.cpp
  LINK sgdph_lab_base sgdph::sgdph ZLIB::ZLIB)
