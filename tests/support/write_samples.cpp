// Writes a small ImageNet-style set of JPEGs to a folder, for tests that drive the command.
#include "support/sample_data.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  sgdph::test::write_image_folder(argv[1], 2, 6);
  return 0;
}
