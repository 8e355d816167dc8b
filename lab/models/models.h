#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace sgdph::lab::models {

class ImageModel;

enum class Form { Cifar, ImageNet };
enum class Norm { Batch, Layer, Group, Instance, None, Weight };

/// Whose layers a network is made of: LibTorch's, or `sgdph::nn`'s with cheap second derivatives.
enum class Kernels { Stock, Fast };

Norm norm_from_name(const std::string& name);  ///< UserError with the nearest name
std::vector<std::string> norm_names();

struct ModelInfo {
  std::string name;
  std::string title;   ///< one line for lists
  bool small = false;  ///< CIFAR form only
};

struct ModelOptions {
  std::string name;
  Form form = Form::Cifar;
  Norm norm = Norm::Batch;
  Kernels kernels = Kernels::Fast;
  double width = 1;         ///< multiplies the channels
  int64_t stem_stride = 0;  ///< of a ResNet's first convolution; 0: as the form has it
  int64_t in_channels = 3;
  int64_t classes = 10;
};

const std::vector<ModelInfo>& model_infos();
/// Builds and initialises (from LibTorch's default generator) a network; a UserError for what cannot be.
std::shared_ptr<ImageModel> make_model(const ModelOptions& options);

int64_t count_parameters(const torch::nn::Module& model);

}  // namespace sgdph::lab::models
