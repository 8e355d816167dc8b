#include "train/judge.h"

#include "train/data_parallel.h"

namespace sgdph::lab::train {

Judge::Judge(const RunParts& parts, dist::Group& group)
    : group_(group),
      model_(*parts.model),
      device_(parts.settings.device),
      bf16_(parts.settings.bf16()),
      test_(std::make_unique<data::Loader>(
          *parts.data.test, shared_by(group, test_loader_options(parts.settings, *parts.data.test)))) {
  if (!parts.data.validation) return;
  validation_ = std::make_unique<data::Loader>(
      *parts.data.validation, shared_by(group, in_order(parts.settings, parts.data.validation->size())));
}

Evaluation Judge::on_the_way(int64_t limit) {
  return evaluate(model_, validates() ? *validation_ : *test_, device_, {limit, bf16_, &group_});
}

Evaluation Judge::at_the_end() {
  return evaluate(model_, *test_, device_, {0, bf16_, &group_});
}

nlohmann::json figures_of(const std::string& key, const Evaluation& evaluation) {
  return {{key + "_loss", evaluation.loss}, {key + "_top1", evaluation.top1}, {key + "_top5", evaluation.top5}};
}

}  // namespace sgdph::lab::train
