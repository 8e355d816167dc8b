#include "dist/group.h"

#include "base/clock.h"
#include "base/error.h"
#include "dist/address.h"

#include <ATen/Functions.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace sgdph::lab::dist {
namespace {

std::atomic<bool> disorder{false};

Milliseconds milliseconds(double seconds) {
  return Milliseconds(static_cast<int64_t>(1000 * seconds));
}

}  // namespace

Group::Group(Environment environment, const GroupOptions& options) : environment_(std::move(environment)) {
  if (!alone()) roster_ = std::make_unique<Roster>(environment_, options.facts, milliseconds(options.timeout));
}

void Group::compare(const std::string& name, const Facts& facts) {
  if (!alone()) roster_->compare(name, facts);
}

void Group::connect(bool cuda) {
  if (alone()) return;
  if (cuda) device_ = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(environment_.local_rank));
  const auto interfaces = interfaces_of(std::getenv(kInterfaces));
  try {
    for (const auto& name : interfaces) check_interface(name);
  } catch (const std::exception& error) {
    roster_->give_up(error.what());
  }
  roster_->meet();
  roster_->begin_start();
  try {
    const auto& own = roster_->members()[static_cast<size_t>(rank())];
    collectives_ = std::make_unique<Collectives>(
        roster_->store(), environment_, cuda, own.address, interfaces, roster_->patience());
  } catch (const UserError& error) {
    abandon(error.what());
    throw;
  } catch (const std::exception& error) {
    roster_->fail_start(error);
  }
  roster_->end_start();
}

Group::~Group() {
  if (!roster_) return;
  try {
    if (std::uncaught_exceptions() > 0) abandon("an error");
    if (!was_abandoned() && !roster_->leave()) disorder = true;
  } catch (...) {
    disorder = true;  // what cannot be ended in order is left to the end of the process
  }
}

bool Group::was_abandoned() {
  return disorder;
}

void Group::abandon(const std::string& reason) {
  if (alone() || disorder.exchange(true)) return;
  roster_->abandon(reason);
  if (collectives_) collectives_->let_go();
}

std::vector<std::string> Group::hosts() const {
  if (alone()) return {host_name()};
  std::vector<std::string> names;
  for (const auto& member : roster_->members()) names.push_back(member.host);
  return names;
}

Wait Group::begin_sum(at::Tensor& tensor) {
  if (alone()) return [] {};
  ++begun_;
  roster_->count();
  try {
    return [this, wait = collectives_->begin_sum(tensor)] { waiting(wait); };
  } catch (const std::exception& error) {
    roster_->fail(error.what());
  }
}

void Group::waiting(const Wait& wait) {
  const double started = seconds_now();
  try {
    wait();
  } catch (const std::exception& error) {
    roster_->fail(error.what());
  }
  waited_ += seconds_now() - started;
}

void Group::sum(at::Tensor& tensor) {
  begin_sum(tensor)();
}

void Group::broadcast(at::Tensor& tensor) {
  if (alone()) return;
  ++begun_;
  roster_->count();
  waiting([&] { collectives_->begin_broadcast(tensor)(); });
}

void Group::broadcast(std::string& bytes) {
  if (alone()) return;
  auto length = at::full({1}, static_cast<int64_t>(bytes.size()), at::TensorOptions(at::kLong));
  length = length.to(device_);
  broadcast(length);
  bytes.resize(static_cast<size_t>(length.item<int64_t>()));
  if (bytes.empty()) return;
  auto content = at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, at::TensorOptions(at::kByte));
  auto sent = content.to(device_);
  broadcast(sent);
  if (!sent.is_same(content)) content.copy_(sent);
}

std::vector<double> Group::gather(double figure) {
  auto figures = at::zeros({size()}, at::TensorOptions(at::kDouble).device(device_));
  figures[rank()] = figure;
  sum(figures);
  figures = figures.cpu();
  return {figures.data_ptr<double>(), figures.data_ptr<double>() + size()};
}

bool Group::any(bool one) {
  if (alone()) return one;
  auto count = at::full({1}, one ? 1. : 0., at::TensorOptions(at::kDouble).device(device_));
  sum(count);
  return count.item<double>() > 0;
}

void Group::post(const std::string& key, const std::string& words) {
  if (alone()) return;
  try {
    roster_->store().set(key, words);
  } catch (const std::exception& error) {
    roster_->fail(error.what());
  }
}

std::optional<std::string> Group::find(const std::string& key) {
  if (alone()) return std::nullopt;
  try {
    return roster_->store().get(key);
  } catch (const std::exception& error) {
    roster_->fail(error.what());
  }
}

std::string Group::wait_for(const std::string& key, const std::function<void()>& meanwhile) {
  std::optional<std::string> words;
  roster_->wait([&] {
    if (meanwhile) meanwhile();
    return (words = roster_->store().get(key)).has_value();
  });
  return *words;
}

}  // namespace sgdph::lab::dist
