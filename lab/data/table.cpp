// The data sets, a row each: name, title, shape, classes, parts, where it is looked for, how to get it, how to open it.

#include <utility>

#include "data/datasets.h"
#include "data/openers.h"

namespace sgdph::lab::data {
namespace {

constexpr int64_t kCifarMaxBytes = int64_t{256} << 20;

constexpr const char* kFashionMnistText =
    "Fashion-MNIST is a package of Debian. Install it:\n"
    "  sudo apt-get install {package}\n"
    "It is then found in {path}. Elsewhere, put the four files of\n"
    "https://github.com/zalandoresearch/fashion-mnist into one folder and name it by --data-path:\n"
    "  {train_files}\n"
    "  {test_files}";

constexpr const char* kMiniImageNetText =
    "Mini-ImageNet is made of images of ImageNet, which needs a registration:\n"
    "  1. Register at https://image-net.org and agree to its terms. Get the training images of ILSVRC 2012, or a copy "
    "of\n"
    "     Mini-ImageNet (60,000 images of 84 x 84) from whoever may give it to you.\n"
    "  2. Get the lists of Ravi and Larochelle ({train_files}; lines of filename,label) from\n"
    "     https://github.com/twitter-research/meta-learning-lstm, folder data/miniImagenet.\n"
    "  3. Lay them out so:\n"
    "       {path}/{train_files}\n"
    "       {path}/images/<filename>    every file of the lists, as JPEG\n"
    "The three lists are joined: {classes} classes, of each the first {train_each} images for training, the last\n"
    "{test_each} for testing.\n"
    "Then run: sgdph data verify {name}";

constexpr const char* kImageNetText =
    "ImageNet needs a registration:\n"
    "  1. Register at https://image-net.org and agree to its terms.\n"
    "  2. Get from the page of ILSVRC 2012: ILSVRC2012_img_train.tar (138 GB), ILSVRC2012_img_val.tar (6.3 GB) and\n"
    "     ILSVRC2012_devkit_t12.tar.gz (the classes of the validation images).\n"
    "  3. Unpack them so (the inner archives as well, the validation images sorted into their classes):\n"
    "       {path}/{train_files}/<class>/*.JPEG    {classes} folders, {train} images\n"
    "       {path}/{test_files}/<class>/*.JPEG      the same folders, {test} images\n"
    "Any other set of class folders works as well, given by --data-path.\n"
    "Then run: sgdph data verify {name}";

DatasetOrigin by_download(
    std::string url, std::string checksum, std::vector<std::string> optional_files, int64_t max_bytes) {
  DatasetOrigin origin;
  origin.archive = {std::move(url), std::move(checksum), std::move(optional_files), max_bytes};
  return origin;
}

DatasetOrigin by_hand(const char* instructions, const char* package = "") {
  DatasetOrigin origin;
  origin.package = package;
  origin.instructions = instructions;
  return origin;
}

std::string in_data_root(const std::string& folder) {
  return std::string(kDataRoot) + "/" + folder;
}

}  // namespace

const std::vector<DatasetEntry>& datasets() {
  static const std::vector<DatasetEntry> rows{
      // Of each file the published digest first, Debian's second: the same compressed stream, but Debian clears the
      // name
      // and the date in the gzip header. (Putting name and date back gives the published digest, for all four.)
      {"fashion-mnist",
       "Fashion-MNIST",
       {1, 28, 28},
       10,
       {60000,
        {{"train-images-idx3-ubyte.gz", {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "cf8536b0aa1a6ac5fa3f23001093305c"}},
         {"train-labels-idx1-ubyte.gz", {"25c81989df183df01b3e8a0aad5dffbe", "10bea18fdb374794d4bb42e356e600c9"}}}},
       {10000,
        {{"t10k-images-idx3-ubyte.gz", {"bef4ecab320f06d8554ea6380940ec79", "f78720b4224f21cce2f2ccf2d7a94c9a"}},
         {"t10k-labels-idx1-ubyte.gz", {"bb300cfdad3c16e7a12a480ee83cd310", "0d30e22e447f3c33dab9ed536400ac01"}}}},
       "/usr/share/datasets/fashion-mnist",
       by_hand(kFashionMnistText, "dataset-fashion-mnist"),
       open_fashion_mnist},
      {"cifar10",
       "CIFAR-10",
       {3, 32, 32},
       10,
       {50000,
        {{"data_batch_1.bin"}, {"data_batch_2.bin"}, {"data_batch_3.bin"}, {"data_batch_4.bin"}, {"data_batch_5.bin"}}},
       {10000, {{"test_batch.bin"}}},
       in_data_root("cifar-10-batches-bin"),
       by_download(
           "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530",
           {"batches.meta.txt", "readme.html"}, kCifarMaxBytes),
       open_cifar10},
      {"cifar100",
       "CIFAR-100",
       {3, 32, 32},
       100,
       {50000, {{"train.bin"}}},
       {10000, {{"test.bin"}}},
       in_data_root("cifar-100-binary"),
       by_download(
           "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8",
           {"fine_label_names.txt", "coarse_label_names.txt"}, kCifarMaxBytes),
       open_cifar100},
      {"mini-imagenet",
       "Mini-ImageNet",
       {3, 224, 224},
       100,
       {50000, {{"train.csv"}, {"val.csv"}, {"test.csv"}}},
       {10000, {{"train.csv"}, {"val.csv"}, {"test.csv"}}},
       in_data_root("mini-imagenet"),
       by_hand(kMiniImageNetText),
       open_mini_imagenet,
       mini_imagenet_pictures},
      {"imagenet",
       "ImageNet, or any class folders of JPEG (train/<class>/, val/<class>/)",
       {3, 224, 224},
       1000,
       {1281167, {{"train"}}},
       {50000, {{"val"}}},
       in_data_root("imagenet"),
       by_hand(kImageNetText),
       open_image_folder,
       image_folder_pictures},
  };
  return rows;
}

}  // namespace sgdph::lab::data
