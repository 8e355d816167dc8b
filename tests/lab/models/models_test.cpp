// The networks: sizes, names, shapes, norms, and that they can be differentiated twice.

#include "models/models.h"
#include "base/error.h"
#include "models/image_model.h"
#include "models/layers.h"
#include "support/checks.h"

#include <sgdph/nn/modules.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace sgdph::lab::models::models_test {
namespace {

using test::error_of;

namespace nn = torch::nn;

const std::vector<Norm> kNorms = {Norm::Batch, Norm::Layer, Norm::Group, Norm::Instance, Norm::None, Norm::Weight};

std::shared_ptr<ImageModel> model_of(
    const std::string& name, Form form, Norm norm = Norm::Batch, double width = 1, int64_t classes = 10) {
  torch::manual_seed(3);
  ModelOptions options;
  options.name = name;
  options.form = form;
  options.norm = norm;
  options.width = width;
  options.classes = classes;
  return make_model(options);
}

template <class Layer>
std::vector<const Layer*> layers_of(const nn::Module& model) {
  std::vector<const Layer*> found;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (const auto* layer = module->as<Layer>()) found.push_back(layer);
  }
  return found;
}

int64_t count_of(const std::string& name, Form form, Norm norm, int64_t classes) {
  return count_parameters(*model_of(name, form, norm, 1, classes));
}

TEST(Models, HaveTorchvisionsNumberOfParametersInImageNetForm) {
  EXPECT_EQ(count_of("vgg11", Form::ImageNet, Norm::Batch, 1000), 132868840);
  EXPECT_EQ(count_of("vgg11", Form::ImageNet, Norm::None, 1000), 132863336);
  EXPECT_EQ(count_of("vgg19", Form::ImageNet, Norm::Batch, 1000), 143678248);
  EXPECT_EQ(count_of("resnet18", Form::ImageNet, Norm::Batch, 1000), 11689512);
  EXPECT_EQ(count_of("resnet50", Form::ImageNet, Norm::Batch, 1000), 25557032);
}

// Convolutions without bias, norms with gain and shift, one linear layer.
int64_t count_by_hand(const std::vector<int64_t>& channels, int64_t blocks, int64_t classes) {
  int64_t total = 3 * channels[0] * 9 + 2 * channels[0];
  auto in = channels[0];
  for (const auto out : channels) {
    total += in * out * 9 + (2 * blocks - 1) * out * out * 9 + 2 * blocks * 2 * out;
    in = out;
  }
  return total + in * classes + classes;
}

TEST(Models, SmallResNetsHaveTheNumberOfParametersOfTheirDefinition) {
  EXPECT_EQ(count_by_hand({16, 32, 64}, 3, 10), 269722);
  EXPECT_EQ(count_of("resnet20", Form::Cifar, Norm::Batch, 10), 269722);
  EXPECT_EQ(count_of("resnet8", Form::Cifar, Norm::Batch, 100), count_by_hand({8, 16, 32}, 1, 100));
}

TEST(Models, NameTheirParametersAsTorchvision) {
  const auto shape = [](const nn::Module& model, const std::string& name) {
    const auto parameters = model.named_parameters();
    const auto buffers = model.named_buffers();
    const auto* found = parameters.find(name);
    if (found == nullptr) found = buffers.find(name);
    return found == nullptr ? std::vector<int64_t>{-1} : found->sizes().vec();
  };
  using Shape = std::vector<int64_t>;
  const auto resnet = model_of("resnet50", Form::ImageNet, Norm::Batch, 0.125);
  EXPECT_EQ(shape(*resnet, "conv1.weight"), (Shape{8, 3, 7, 7}));
  EXPECT_EQ(shape(*resnet, "bn1.running_var"), (Shape{8}));
  EXPECT_EQ(shape(*resnet, "layer1.0.downsample.0.weight"), (Shape{32, 8, 1, 1}));
  EXPECT_EQ(shape(*resnet, "layer2.0.downsample.1.num_batches_tracked"), (Shape{}));
  EXPECT_EQ(shape(*resnet, "layer4.2.conv2.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(shape(*resnet, "layer4.2.bn3.bias"), (Shape{256}));
  EXPECT_EQ(shape(*resnet, "fc.weight"), (Shape{10, 256}));
  EXPECT_EQ(shape(*resnet, "conv1.bias"), (Shape{-1}));
  const auto vgg = model_of("vgg11", Form::ImageNet, Norm::Batch, 0.125);
  EXPECT_EQ(shape(*vgg, "features.0.bias"), (Shape{8}));
  EXPECT_EQ(shape(*vgg, "features.26.running_mean"), (Shape{64}));
  EXPECT_EQ(shape(*vgg, "classifier.0.weight"), (Shape{512, 64 * 49}));
  EXPECT_EQ(shape(*vgg, "classifier.6.bias"), (Shape{10}));
  const auto plain = model_of("vgg11", Form::Cifar, Norm::None, 0.125);
  EXPECT_EQ(shape(*plain, "features.18.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(shape(*plain, "classifier.weight"), (Shape{10, 64}));
}

TEST(Models, MapImagesToClassScoresInEveryFormAndNorm) {
  for (const auto& info : model_infos()) {
    for (const auto form : {Form::Cifar, Form::ImageNet}) {
      if (info.small && form == Form::ImageNet) continue;
      for (const auto norm : kNorms) {
        const auto model = model_of(info.name, form, norm, 0.0625, 7);
        const std::vector<int64_t> sizes =
            form == Form::Cifar ? std::vector<int64_t>{28, 32} : std::vector<int64_t>{64};
        for (const auto size : sizes) {
          const auto scores = model->forward(torch::randn({2, 3, size, size}));
          EXPECT_EQ(scores.sizes(), (std::vector<int64_t>{2, 7})) << info.name;
          EXPECT_TRUE(scores.isfinite().all().item<bool>()) << info.name;
          // Different images, different scores: nothing on the way has forgotten them.
          EXPECT_GT((scores[0] - scores[1]).abs().max().item<double>(), 0) << info.name << ' ' << size;
        }
      }
    }
  }
}

TEST(Models, TakeTheNumberOfInputChannelsAsked) {
  ModelOptions options;
  options.name = "resnet8";
  options.in_channels = 1;
  EXPECT_EQ(make_model(options)->forward(torch::randn({2, 1, 28, 28})).size(1), 10);
}

TEST(Models, AreDifferentiatedTwiceRightlyWithEveryNorm) {
  for (const std::string name : {"resnet8", "resnet50", "vgg11"}) {
    for (const auto norm : kNorms) {
      auto model = model_of(name, Form::Cifar, norm, 0.0625, 5);
      model->to(torch::kFloat64);
      const auto images = torch::randn({3, 3, 32, 32}, torch::kFloat64);
      const auto labels = torch::tensor({0, 3, 1});
      const auto parameters = model->parameters();
      // Shifts of 0 put dead channels exactly on the kink of the rectifier, where no difference of gradients is right.
      for (const auto& parameter : parameters) {
        if (parameter.dim() == 1) parameter.data().add_(torch::randn_like(parameter), 0.1);
      }
      const auto gradients = [&] {
        auto loss = nn::functional::cross_entropy(model->forward(images), labels);
        return torch::autograd::grad({loss}, parameters, {}, true, true);
      };
      // One direction over all parameters; its product with the Hessian against a difference of gradients.
      std::vector<at::Tensor> direction;
      auto slope = torch::zeros({}, torch::kFloat64);
      const auto here = gradients();
      for (size_t i = 0; i < parameters.size(); ++i) {
        direction.push_back(torch::randn_like(parameters[i]));
        slope = slope + (here[i] * direction[i]).sum();
      }
      const auto products = torch::autograd::grad({slope}, parameters, {}, {}, false, true);
      const auto shift = [&](double by) {
        for (size_t i = 0; i < parameters.size(); ++i) parameters[i].data().add_(direction[i], by);
      };
      // A wrong product is wrong at every step; a rectifier that switches in between spoils the larger steps only.
      double error = std::numeric_limits<double>::infinity();
      double size = 0;
      for (const double step : {1e-7, 1e-8, 1e-9, 1e-10, 1e-11}) {
        shift(step);
        const auto after = gradients();
        shift(-2 * step);
        const auto before = gradients();
        shift(step);
        double error_here = 0;
        for (size_t i = 0; i < parameters.size(); ++i) {
          const auto product = products[i].defined() ? products[i] : torch::zeros_like(parameters[i]);
          ASSERT_TRUE(product.isfinite().all().item<bool>()) << name;
          const auto difference = (after[i] - before[i]) / (2 * step);
          error_here = std::max(error_here, (product - difference).abs().max().item<double>());
          size = std::max(size, product.abs().max().item<double>());
        }
        error = std::min(error, error_here);
        if (error < 1e-5 * size) break;
      }
      EXPECT_GT(size, 0);
      EXPECT_LT(error, 1e-4 * size) << name << " norm " << static_cast<int>(norm);
    }
  }
}

TEST(Models, TrainWithSGDPH) {
  for (const auto norm : kNorms) {
    auto model = model_of("resnet8", Form::Cifar, norm, 0.5, 5);
    SGDPH optimizer(*model, SGDPHOptions(0.01));
    const auto images = torch::randn({8, 3, 16, 16});
    const auto labels = torch::randint(5, {8});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      auto loss = nn::functional::cross_entropy(model->forward(images), labels);
      optimizer.backward(loss);
      optimizer.step();
      EXPECT_TRUE(std::isfinite(loss.item<double>())) << static_cast<int>(norm);
    }
  }
}

TEST(Models, HaveTheNormLayersAsked) {
  const auto batch = model_of("resnet8", Form::Cifar, Norm::Batch);
  EXPECT_EQ(layers_of<sgdph::nn::BatchNormReLU2dImpl>(*batch).size(), 7);
  const auto group_model = model_of("resnet18", Form::Cifar, Norm::Group, 0.75);
  const auto group = layers_of<nn::GroupNormImpl>(*group_model);
  ASSERT_EQ(group.size(), 20);
  EXPECT_EQ(group[0]->options.num_groups(), 24);   // of 48 channels
  EXPECT_EQ(group[19]->options.num_groups(), 32);  // of 384
  const auto instance_model = model_of("vgg11", Form::Cifar, Norm::Instance, 0.125);
  const auto instance = layers_of<nn::InstanceNorm2dImpl>(*instance_model);
  ASSERT_EQ(instance.size(), 8);
  EXPECT_TRUE(instance[0]->weight.defined());
  for (const auto norm : {Norm::None, Norm::Weight}) {
    const auto model = model_of("resnet8", Form::Cifar, norm);
    EXPECT_EQ(layers_of<nn::BatchNorm2dImpl>(*model).size() + layers_of<nn::GroupNormImpl>(*model).size(), 0);
    EXPECT_EQ(layers_of<nn::Conv2dImpl>(*model).size(), norm == Norm::None ? 7 : 0);
    EXPECT_EQ(layers_of<WeightNormConv2dImpl>(*model).size(), norm == Norm::None ? 0 : 7);
    EXPECT_NE(model->named_parameters().find("layer1.0.conv2.bias"), nullptr);
  }
}

TEST(Models, LayerNormHasOneGroupAndGroupNormTheLargestDivisorUpTo32) {
  const auto model = model_of("resnet8", Form::Cifar, Norm::Layer);
  EXPECT_EQ(layers_of<nn::GroupNormImpl>(*model).size(), 7);
  for (const auto* layer : layers_of<nn::GroupNormImpl>(*model)) EXPECT_EQ(layer->options.num_groups(), 1);
  EXPECT_EQ(norm_groups(512), 32);
  EXPECT_EQ(norm_groups(48), 24);
  EXPECT_EQ(norm_groups(37), 1);
  EXPECT_EQ(norm_groups(8), 8);
}

TEST(Models, ComputeTheSameWithAndWithoutWeightNormalisationAtFirst) {
  for (const std::string name : {"resnet8", "resnet18", "vgg11"}) {
    auto plain = model_of(name, Form::Cifar, Norm::None, 0.125);
    auto normed = model_of(name, Form::Cifar, Norm::Weight, 0.125);
    plain->to(torch::kFloat64);
    normed->to(torch::kFloat64);
    const auto images = torch::randn({2, 3, 32, 32}, torch::kFloat64);
    const auto expected = plain->forward(images);
    // Gains are norms rounded to float32.
    EXPECT_TRUE(torch::allclose(normed->forward(images), expected, 0, 1e-5 * expected.abs().max().item<double>()))
        << name;
  }
}

TEST(Models, StartAsTorchvisionsDo) {
  const auto resnet = model_of("resnet18", Form::ImageNet, Norm::Batch);
  const auto weights = resnet->named_parameters();
  const auto& conv = weights["layer3.1.conv1.weight"];
  EXPECT_NEAR(conv.std().item<double>(), std::sqrt(2.0 / (256 * 9)), 2e-4);
  EXPECT_TRUE(weights["layer3.1.bn1.weight"].eq(1).all().item<bool>());
  EXPECT_TRUE(weights["layer3.1.bn1.bias"].eq(0).all().item<bool>());
  EXPECT_LE(weights["fc.weight"].abs().max().item<double>(), 1 / std::sqrt(512.0));
  const auto vgg = model_of("vgg11", Form::Cifar, Norm::Batch);
  EXPECT_NEAR(vgg->named_parameters()["classifier.weight"].std().item<double>(), 0.01, 1e-3);
  EXPECT_TRUE(vgg->named_parameters()["features.0.bias"].eq(0).all().item<bool>());
}

TEST(ResNet20, HasShortcutsWithoutParameters) {
  const auto model = model_of("resnet20", Form::Cifar);
  for (const auto& item : model->named_parameters()) EXPECT_EQ(item.key().find("downsample"), std::string::npos);
}

TEST(ResNet20, PassesItsInputThroughShortcutsPaddedWithZeros) {
  // With all gains 0 the blocks are relu(shortcut), so stage 2 holds every second pixel of stage 1 between zeros.
  auto model = model_of("resnet8", Form::Cifar);
  model->eval();
  torch::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    if (item.key().find("layer") == 0 && item.key().find("bn") != std::string::npos) item.value().zero_();
  }
  auto* fc = model->named_children()["fc"]->as<nn::LinearImpl>();
  fc->weight = torch::eye(32);
  fc->bias = torch::zeros({32});
  const auto images = torch::randn({1, 3, 32, 32});
  auto* conv = model->named_children()["conv1"]->as<nn::Conv2dImpl>();
  auto* norm = model->named_children()["bn1"]->as<sgdph::nn::BatchNormReLU2dImpl>();
  const auto stem = norm->forward(conv->forward(images));
  const auto kept = stem.slice(2, 0, 32, 4).slice(3, 0, 32, 4).mean({2, 3});
  const auto expected = nn::functional::pad(kept, nn::functional::PadFuncOptions({12, 12}));
  EXPECT_TRUE(torch::allclose(model->forward(images), expected, 1e-5, 1e-6));
}

TEST(Models, ScaleTheirChannelsByTheWidth) {
  const auto half = model_of("resnet18", Form::Cifar, Norm::Batch, 0.5);
  EXPECT_EQ(half->named_parameters()["conv1.weight"].size(0), 32);
  EXPECT_EQ(half->named_parameters()["layer4.1.conv2.weight"].size(0), 256);
  EXPECT_EQ(half->named_parameters()["fc.weight"].size(1), 256);
  const auto twice = model_of("resnet8", Form::Cifar, Norm::Batch, 2);
  EXPECT_EQ(twice->named_parameters()["fc.weight"].size(1), 64);
}

TEST(Models, AreTheSameFromTheSameSeed) {
  const auto first = model_of("vgg11", Form::Cifar, Norm::Weight, 0.125)->parameters();
  const auto second = model_of("vgg11", Form::Cifar, Norm::Weight, 0.125)->parameters();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].equal(second[i]));
}

TEST(Models, RefuseWhatCannotBe) {
  const auto refused = [](const std::function<void(ModelOptions&)>& change) {
    ModelOptions options;
    options.name = "resnet18";
    change(options);
    return error_of([&] { make_model(options); });
  };
  EXPECT_EQ(
      refused([](auto& o) { o.name = "resnet81"; }),
      "unknown model 'resnet81' (did you mean 'resnet18'?); there are vgg11, vgg19, resnet18, resnet50, resnet20, "
      "resnet8");
  EXPECT_EQ(
      refused([](auto& o) { o.name = "resnet20", o.form = Form::ImageNet; }),
      "model resnet20 has the CIFAR form only; use that form, or resnet18 in ImageNet form");
  EXPECT_EQ(
      refused([](auto& o) { o.width = 0; }), "model resnet18: width 0 is out of range; use more than 0, up to 16");
  for (const double width : {-1.0, 17.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(refused([&](auto& o) { o.width = width; }).find("width"), std::string::npos) << width;
  }
  EXPECT_EQ(refused([](auto& o) { o.width = 0.001; }), "width 0.001 leaves no channel of 64; use at least 0.0078125");
  EXPECT_EQ(
      refused([](auto& o) { o.classes = 0; }), "model resnet18: number of classes 0 is out of range; use 1 to 1000000");
  EXPECT_EQ(
      refused([](auto& o) { o.in_channels = -3; }),
      "model resnet18: number of input channels -3 is out of range; use 1 to 1000000");
}

TEST(Norms, HaveNames) {
  std::set<Norm> seen;
  for (const auto& name : norm_names()) seen.insert(norm_from_name(name));
  EXPECT_EQ(seen.size(), kNorms.size());
  EXPECT_EQ(norm_from_name("weight"), Norm::Weight);
  EXPECT_EQ(
      error_of([] { norm_from_name("bacth"); }),
      "unknown norm 'bacth' (did you mean 'batch'?); there are batch, layer, group, instance, none, weight");
}

}  // namespace
}  // namespace sgdph::lab::models::models_test
