#include "fetch/sources.h"

#include <algorithm>

#include "base/names.h"

namespace sgdph::lab {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

Source cifar10() {
  Source source;
  source.name = "cifar10";
  source.url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
  source.checksum = Checksum::parse("md5:c32a1d4ab5d03f1284b67883e8d87530");
  source.folder = "cifar-10-batches-bin";
  source.required = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                     "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  source.optional = {"batches.meta.txt", "readme.html"};
  source.max_bytes = 256 * kMebibyte;
  source.train_images = 50000;
  source.test_images = 10000;
  return source;
}

Source cifar100() {
  Source source;
  source.name = "cifar100";
  source.url = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz";
  source.checksum = Checksum::parse("md5:03b5dce01913d631647c71ecec9e9cb8");
  source.folder = "cifar-100-binary";
  source.required = {"train.bin", "test.bin"};
  source.optional = {"fine_label_names.txt", "coarse_label_names.txt"};
  source.max_bytes = 256 * kMebibyte;
  source.train_images = 50000;
  source.test_images = 10000;
  return source;
}

Source fashion_mnist() {
  Source source;
  source.name = "fashion-mnist";
  source.instructions =
      "Fashion-MNIST is a package of Debian. Install it:\n"
      "  sudo apt-get install dataset-fashion-mnist\n"
      "It is then found in /usr/share/datasets/fashion-mnist. Elsewhere, put the four files of\n"
      "https://github.com/zalandoresearch/fashion-mnist into one folder and name it by --data-path:\n"
      "  train-images-idx3-ubyte.gz  train-labels-idx1-ubyte.gz\n"
      "  t10k-images-idx3-ubyte.gz   t10k-labels-idx1-ubyte.gz";
  // The published file first, Debian's second: the same compressed stream, but Debian clears the name and the date in
  // the gzip header. (Putting name and date back gives the published digest, for all four.)
  source.known_md5 = {
      {"train-images-idx3-ubyte.gz", {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "cf8536b0aa1a6ac5fa3f23001093305c"}},
      {"train-labels-idx1-ubyte.gz", {"25c81989df183df01b3e8a0aad5dffbe", "10bea18fdb374794d4bb42e356e600c9"}},
      {"t10k-images-idx3-ubyte.gz", {"bef4ecab320f06d8554ea6380940ec79", "f78720b4224f21cce2f2ccf2d7a94c9a"}},
      {"t10k-labels-idx1-ubyte.gz", {"bb300cfdad3c16e7a12a480ee83cd310", "0d30e22e447f3c33dab9ed536400ac01"}}};
  source.train_images = 60000;
  source.test_images = 10000;
  return source;
}

Source mini_imagenet() {
  Source source;
  source.name = "mini-imagenet";
  source.instructions =
      "Mini-ImageNet is made of images of ImageNet, which needs a registration:\n"
      "  1. Register at https://image-net.org and agree to its terms. Get the training images of ILSVRC 2012, or a "
      "copy of\n"
      "     Mini-ImageNet (60,000 images of 84 x 84) from whoever may give it to you.\n"
      "  2. Get the lists of Ravi and Larochelle (train.csv, val.csv, test.csv; lines of filename,label) from\n"
      "     https://github.com/twitter-research/meta-learning-lstm, folder data/miniImagenet.\n"
      "  3. Lay them out so:\n"
      "       data/mini-imagenet/train.csv, val.csv, test.csv\n"
      "       data/mini-imagenet/images/<filename>    every file of the lists, as JPEG\n"
      "The three lists are joined: 100 classes, of each the first 500 images for training, the last 100 for testing.\n"
      "Then run: sgdph data verify mini-imagenet";
  source.train_images = 50000;
  source.test_images = 10000;
  return source;
}

Source imagenet() {
  Source source;
  source.name = "imagenet";
  source.instructions =
      "ImageNet needs a registration:\n"
      "  1. Register at https://image-net.org and agree to its terms.\n"
      "  2. Get from the page of ILSVRC 2012: ILSVRC2012_img_train.tar (138 GB), ILSVRC2012_img_val.tar (6.3 GB) and\n"
      "     ILSVRC2012_devkit_t12.tar.gz (the classes of the validation images).\n"
      "  3. Unpack them so (the inner archives as well, the validation images sorted into their classes):\n"
      "       data/imagenet/train/<class>/*.JPEG    1000 folders, 1,281,167 images\n"
      "       data/imagenet/val/<class>/*.JPEG      the same folders, 50,000 images\n"
      "Any other set of class folders works as well, given by --data-path.\n"
      "Then run: sgdph data verify imagenet";
  source.train_images = 1281167;
  source.test_images = 50000;
  return source;
}

}  // namespace

const Source& source_of(const std::string& name) {
  static const std::vector<Source> sources{fashion_mnist(), cifar10(), cifar100(), mini_imagenet(), imagenet()};
  std::vector<std::string> names;
  for (const auto& source : sources) names.push_back(source.name);
  check_name("data set", name, names);
  return *std::find_if(sources.begin(), sources.end(), [&](const Source& source) { return source.name == name; });
}

}  // namespace sgdph::lab
