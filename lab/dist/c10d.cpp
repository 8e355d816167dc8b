#include "dist/c10d.h"

#include "base/error.h"

#include <ATen/Functions.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef SGDPH_HAS_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <cstdlib>
#include <type_traits>
#include <utility>

namespace sgdph::lab::dist {
namespace {

/// `Backend` in 2.x, `ProcessGroup` in 1.x: what Gloo's group derives from.
template <class Group>
auto base_of() {
  if constexpr (std::is_base_of_v<c10d::ProcessGroup, Group>) {
    return c10::intrusive_ptr<c10d::ProcessGroup>();
  } else {
    return c10::intrusive_ptr<c10d::Backend>();
  }
}
using BackendPtr = decltype(base_of<c10d::ProcessGroupGloo>());
using WorkPtr = decltype(std::declval<BackendPtr>()->barrier());

/// The store's older server, where there are two: not every build has libuv, and which are without cannot be asked.
template <class Options>
auto without_libuv(Options& options, int) -> decltype(void(options.useLibUV)) {
  options.useLibUV = false;
}
template <class Options>
void without_libuv(Options&, long) {}

/// c10d warns in pages from 2.x on, of what ends in a line of ours. The variable is the user's to set.
void warn_less() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);
  c10::initLogging();
}

Wait wait_for(WorkPtr work) {
  return [work = std::move(work)] { work->wait(); };
}

}  // namespace

void check_built_for(const Environment&) {}

struct Store::Impl {
  c10::intrusive_ptr<c10d::Store> store;
};

Store::Store(const Environment& environment, Milliseconds timeout) : impl_(std::make_unique<Impl>()) {
  warn_less();
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(environment.port);
  options.isServer = environment.rank == 0 && !environment.launcher_has_store;
  options.numWorkers = static_cast<size_t>(environment.size);
  options.waitWorkers = false;
  options.multiTenant = true;
  options.timeout = timeout;
  without_libuv(options, 0);
  auto server = c10::make_intrusive<c10d::TCPStore>(environment.address, options);
  // What an earlier life of the processes left with torchrun's agent is not ours. Rank 0's own store has no earlier
  // life, and agents of several hosts need not count the same: each counts the restarts that began with it.
  const auto life = environment.launcher_has_store ? std::to_string(environment.restarts) : "0";
  impl_->store = c10::make_intrusive<c10d::PrefixStore>("sgdph/" + life, std::move(server));
}

Store::~Store() = default;

void Store::set(const std::string& key, const std::string& text) {
  impl_->store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

std::optional<std::string> Store::get(const std::string& key) {
  if (!impl_->store->check({key})) return std::nullopt;
  const auto bytes = impl_->store->get(key);
  return std::string(bytes.begin(), bytes.end());
}

int64_t Store::add(const std::string& key, int64_t amount) {
  return impl_->store->add(key, amount);
}

struct Collectives::Impl {
  BackendPtr backend;
};

Collectives::Collectives(
    Store& store, const Environment& environment, bool cuda, const std::string& address,
    const std::vector<std::string>& interfaces, Milliseconds timeout)
    : impl_(std::make_unique<Impl>()) {
  const auto rank = static_cast<int>(environment.rank);
  const auto size = static_cast<int>(environment.size);
  if (cuda) {
#ifdef SGDPH_HAS_NCCL
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout;
    impl_->backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store.impl_->store, rank, size, options);
    return;
#else
    fail("--device: this sgdph was built without NCCL, by which processes on GPUs work together; use --device cpu");
#endif
  }
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  for (const auto& name : interfaces) {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name));
  }
  if (interfaces.empty()) options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
  options->threads = static_cast<int>(2 * options->devices.size());
  impl_->backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store.impl_->store, rank, size, options);
}

Collectives::~Collectives() = default;

Wait Collectives::begin_sum(at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  return wait_for(impl_->backend->allreduce(tensors));  // the sum is its default
}

Wait Collectives::begin_broadcast(at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  return wait_for(impl_->backend->broadcast(tensors));  // rank 0 is its default
}

void Collectives::let_go() {
  // Its end would wait for collectives that never end.
  static_cast<void>(impl_->backend.release());
}

}  // namespace sgdph::lab::dist
