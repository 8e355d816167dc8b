// Writes the tests' small data sets to a folder, for tests that drive the command:
// sgdph_write_samples images FOLDER | sgdph_write_samples fashion-mnist FOLDER TRAIN TEST SEED
#include <cstdio>
#include <string>

#include "support/sample_data.h"

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (kind == "images" && argc == 3) {
    sgdph::test::write_image_folder(argv[2], 2, 6);
  } else if (kind == "fashion-mnist" && argc == 6) {
    sgdph::test::write_fashion_mnist(argv[2], std::stoi(argv[3]), std::stoi(argv[4]), std::stoull(argv[5]));
  } else {
    std::fputs("sgdph_write_samples images FOLDER | fashion-mnist FOLDER TRAIN TEST SEED\n", stderr);
    return 2;
  }
  return 0;
}
