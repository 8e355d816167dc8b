#include "dist/gradient_buckets.h"

#include "base/error.h"
#include "dist/group.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>
#include <utility>

namespace sgdph::lab::dist {
namespace {

using torch::autograd::variable_list;

/// `std::shared_ptr`, from 2.13 on `c10::intrusive_ptr`.
using NodePtr = decltype(torch::autograd::Edge::function);

struct Entry {
  at::Tensor parameter;
  NodePtr node;  ///< where passes add to the gradient; alive as long as somebody holds it, and the hook with it
  uintptr_t hook = 0;
  size_t bucket = 0;
  int64_t offset = 0;  ///< in the bucket
  int64_t flag = 0;    ///< likewise
  bool ready = false;
};

struct Bucket {
  std::vector<size_t> entries;
  int64_t values = 0;
  at::Tensor flat;  ///< gradients, then a flag for each
  size_t waits_for = 0;
  Wait wait;
};

}  // namespace

struct GradientBuckets::State {
  explicit State(Group& all) : group(all) {}

  Group& group;
  std::vector<Entry> entries;
  std::vector<Bucket> buckets;
  std::mutex mutex;  ///< of what follows and the buckets: devices have threads of their own in a backward pass
  bool armed = false;
  size_t sent = 0;  ///< buckets
  size_t sent_early = 0;

  void pack(int64_t bytes);
  void begin();
  void fill(Entry& entry);
  void send_ready();
};

namespace {

class Hook final : public torch::autograd::FunctionPostHook {
 public:
  using Ready = std::function<void(size_t entry)>;
  Hook(Ready ready, size_t entry) : ready_(std::move(ready)), entry_(entry) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    ready_(entry_);
    return outputs;
  }

 private:
  Ready ready_;
  size_t entry_;
};

}  // namespace

void GradientBuckets::State::pack(int64_t bytes) {
  // Backward reaches the last ones first.
  for (size_t i = entries.size(); i-- > 0;) {
    const auto& parameter = entries[i].parameter;
    const auto fits = [&](const Bucket& bucket) {
      const auto& other = entries[bucket.entries.front()].parameter;
      const auto size = (bucket.values + parameter.numel()) * static_cast<int64_t>(parameter.element_size());
      return size <= bytes && other.scalar_type() == parameter.scalar_type() && other.device() == parameter.device();
    };
    if (buckets.empty() || !fits(buckets.back())) buckets.emplace_back();
    auto& bucket = buckets.back();
    entries[i].bucket = buckets.size() - 1;
    entries[i].offset = bucket.values;
    bucket.values += parameter.numel();
    bucket.entries.push_back(i);
  }
  for (auto& bucket : buckets) {
    const auto count = static_cast<int64_t>(bucket.entries.size());
    for (int64_t k = 0; k < count; ++k) entries[bucket.entries[static_cast<size_t>(k)]].flag = bucket.values + k;
    bucket.flat =
        at::zeros(bucket.values + count, entries[bucket.entries.front()].parameter.options().requires_grad(false));
  }
  begin();
}

void GradientBuckets::State::begin() {
  armed = false;
  sent = 0;
  for (auto& bucket : buckets) bucket.waits_for = bucket.entries.size();
  for (auto& entry : entries) entry.ready = false;
}

/// Copies the gradient to its place.
void GradientBuckets::State::fill(Entry& entry) {
  auto& bucket = buckets[entry.bucket];
  const auto& gradient = entry.parameter.grad();
  auto place = bucket.flat.narrow(0, entry.offset, entry.parameter.numel());
  if (gradient.defined()) {
    TORCH_CHECK(!gradient.is_sparse(), "GradientBuckets: sparse gradients cannot be summed over ranks");
    place.copy_(gradient.detach().reshape({-1}));
  } else {
    place.zero_();
  }
  bucket.flat.narrow(0, entry.flag, 1).fill_(gradient.defined() ? 1 : 0);
  entry.ready = true;
  --bucket.waits_for;
}

void GradientBuckets::State::send_ready() {
  for (; sent < buckets.size() && buckets[sent].waits_for == 0; ++sent) {
    buckets[sent].wait = group.begin_sum(buckets[sent].flat);
  }
}

GradientBuckets::GradientBuckets(const std::vector<at::Tensor>& parameters, Group& group, int64_t bytes)
    : state_(std::make_shared<State>(group)) {
  if (group.alone()) return;
  for (const auto& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    Entry entry;
    entry.parameter = parameter;
    entry.node = torch::autograd::impl::gradient_edge(parameter).function;
    state_->entries.push_back(std::move(entry));
  }
  state_->pack(bytes);
  const std::weak_ptr<State> weak = state_;
  const auto ready = [weak](size_t i) {
    const auto state = weak.lock();
    if (!state) return;
    const std::lock_guard lock(state->mutex);
    if (!state->armed || state->entries[i].ready) return;
    const c10::AutoGradMode no_graph(false);
    state->fill(state->entries[i]);
    state->send_ready();
  };
  for (size_t i = 0; i < state_->entries.size(); ++i) {
    auto& entry = state_->entries[i];
    entry.hook = entry.node->add_post_hook(std::make_unique<Hook>(ready, i));
  }
}

GradientBuckets::~GradientBuckets() {
  for (auto& entry : state_->entries) entry.node->del_post_hook(entry.hook);
}

void GradientBuckets::arm() {
  state_->armed = true;
}

void GradientBuckets::finish() {
  auto& state = *state_;
  const c10::AutoGradMode no_graph(false);
  state.sent_early = state.sent;
  for (auto& bucket : state.buckets) {
    for (const auto i : bucket.entries) {
      if (!state.entries[i].ready) state.fill(state.entries[i]);
    }
    state.send_ready();
  }
  for (auto& bucket : state.buckets) {
    std::exchange(bucket.wait, nullptr)();
    const auto flags = bucket.flat.narrow(0, bucket.values, static_cast<int64_t>(bucket.entries.size()))
                           .to(at::kCPU, at::kDouble)
                           .contiguous();
    for (size_t k = 0; k < bucket.entries.size(); ++k) {
      if (flags.data_ptr<double>()[k] == 0) continue;
      auto& entry = state.entries[bucket.entries[k]];
      const auto total = bucket.flat.narrow(0, entry.offset, entry.parameter.numel()).view(entry.parameter.sizes());
      auto& gradient = entry.parameter.mutable_grad();
      if (gradient.defined()) {
        gradient.copy_(total);
      } else {
        gradient = total.clone();
      }
    }
  }
  state.begin();
}

size_t GradientBuckets::count() const {
  return state_->buckets.size();
}

size_t GradientBuckets::sent_early() const {
  return state_->sent_early;
}

}  // namespace sgdph::lab::dist
