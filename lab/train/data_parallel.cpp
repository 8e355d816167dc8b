#include "train/data_parallel.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>

namespace sgdph::lab::train {

DataParallel::DataParallel(const torch::nn::Module& model, optimizers::TrainingOptimizer& optimizer, dist::Group& group)
    : group_(group), parameters_(model.parameters()), buckets_(parameters_, group) {
  for (const auto& buffer : model.buffers()) (buffer.is_floating_point() ? means_ : counts_).push_back(buffer);
  if (group_.alone()) return;
  optimizer.share_with_ranks(group_.rank(), group_.size(), [this](at::Tensor& tensor) { group_.sum(tensor); });
  share_weights(model, group_);
}

void share_weights(const torch::nn::Module& model, dist::Group& group) {
  if (group.alone()) return;
  const c10::AutoGradMode no_graph(false);
  for (const auto& tensors : {model.parameters(), model.buffers()}) {
    for (const auto& tensor : tensors) {
      auto shared = tensor.detach().contiguous();
      group.broadcast(shared);
      if (shared.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(shared);
    }
  }
}

void DataParallel::begin(const Totals& own, bool worked) {
  totals_ = own;
  buckets_.arm();
  if (group_.alone()) return;
  const c10::AutoGradMode no_graph(false);
  const std::vector<double> figures{own.loss,           static_cast<double>(own.correct), static_cast<double>(own.seen),
                                    own.stop ? 1. : 0., own.checkpoint ? 1. : 0.,         worked ? 1. : 0.};
  const auto device = parameters_.front().device();
  std::vector<at::Tensor> parts{at::tensor(figures, at::kDouble).to(device)};
  for (const auto& mean : means_) {
    const auto flat = mean.detach().to(at::kDouble).flatten();
    parts.push_back(worked ? flat : at::zeros_like(flat));
  }
  for (const auto& count : counts_) {
    const auto flat = count.detach().to(at::kDouble).flatten();
    parts.push_back(group_.is_first() ? flat : at::zeros_like(flat));
  }
  flat_ = at::cat(parts);
  wait_ = group_.begin_sum(flat_);
}

DataParallel::Totals DataParallel::finish() {
  if (group_.alone()) return totals_;
  const c10::AutoGradMode no_graph(false);
  std::exchange(wait_, nullptr)();
  constexpr int64_t kFigures = 6;
  const auto figures = flat_.narrow(0, 0, kFigures).cpu();
  const auto* figure = figures.data_ptr<double>();
  Totals all;
  all.loss = figure[0];
  all.correct = static_cast<int64_t>(figure[1]);
  all.seen = static_cast<int64_t>(figure[2]);
  all.stop = figure[3] > 0;
  all.checkpoint = figure[4] > 0;
  const double ranks = figure[5];
  int64_t offset = kFigures;
  const auto next = [&](const at::Tensor& like) {
    auto part = flat_.narrow(0, offset, like.numel()).view(like.sizes());
    offset += like.numel();
    return part;
  };
  for (const auto& mean : means_) {
    const auto total = next(mean);
    if (ranks > 0) mean.copy_(total / ranks);
  }
  for (const auto& count : counts_) count.copy_(next(count));
  buckets_.finish();
  return all;
}

std::optional<formats::CheckpointFile> share_checkpoint(
    dist::Group& group, std::optional<formats::CheckpointFile> checkpoint) {
  if (group.alone()) return checkpoint;
  std::string meta = checkpoint ? checkpoint->meta.dump() : "";
  group.broadcast(meta);
  if (meta.empty()) return std::nullopt;
  if (!checkpoint) checkpoint.emplace();
  checkpoint->meta = nlohmann::json::parse(meta);
  auto names = nlohmann::json::array();
  for (const auto& [name, bytes] : checkpoint->sections) names.push_back(name);
  auto text = names.dump();
  group.broadcast(text);
  for (const auto& name : nlohmann::json::parse(text)) group.broadcast(checkpoint->sections[name.get<std::string>()]);
  return checkpoint;
}

data::LoaderOptions shared_by(const dist::Group& group, data::LoaderOptions options) {
  options.rank = group.rank();
  options.ranks = group.size();
  return options;
}

}  // namespace sgdph::lab::train
