#include "dist/roster.h"

#include "base/progress.h"
#include "base/terminal.h"
#include "dist/roster_impl.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>

namespace sgdph::lab::dist {
namespace {

Pulse pulse_from(const std::optional<std::string>& text) {
  Pulse pulse;
  if (!text) return pulse;
  const auto space = text->find(' ');
  pulse.beats = text->substr(0, space);
  pulse.collectives = std::atoll(text->substr(space + 1).c_str());
  return pulse;
}

}  // namespace

void end_process(const Environment& environment, const std::string& line) {
  static std::mutex once;
  once.lock();  // never given back
  if (!environment.error_file.empty()) {
    const nlohmann::json error{
        {"message", {{"message", line}, {"extraInfo", {{"py_callstack", ""}, {"timestamp", "0"}}}}}};
    std::ofstream(environment.error_file) << error.dump();
  }
  print(stderr, "{}sgdph: {}\n", over_progress(), line);
  std::fflush(nullptr);
  std::_Exit(kLostPeers);
}

std::vector<Pulse> Roster::Impl::pulses(Store& by) const {
  std::vector<Pulse> found;
  for (int64_t rank = 0; rank < environment.size; ++rank) found.push_back(pulse_from(by.get(key_of("pulse", rank))));
  return found;
}

/// Who gave no sign of life in the meantime, or failing that, who is behind.
std::string Roster::Impl::blame(Store& by, const std::string& words) {
  if (const auto failure = by.get("failure")) return *failure;
  const auto before = pulses(by);
  const auto end_of_look = Clock::now() + look;
  int64_t beats = -1;
  while (Clock::now() < end_of_look) {
    by.set(key_of("pulse", environment.rank), fmt::format("{} {}", --beats, collectives.load()));
    std::this_thread::sleep_for(period);
    if (const auto failure = by.get("failure")) return *failure;
    note_answer();
  }
  const auto after = pulses(by);
  note_answer();
  std::vector<std::string> silent;
  int64_t fewest = collectives;
  size_t slowest = after.size();
  for (size_t rank = 0; rank < after.size(); ++rank) {
    if (static_cast<int64_t>(rank) == environment.rank) continue;
    if (before[rank].beats == after[rank].beats) silent.push_back(name(static_cast<int64_t>(rank)));
    if (after[rank].collectives >= fewest) continue;
    fewest = after[rank].collectives;
    slowest = rank;
  }
  if (!silent.empty()) {
    return fmt::format("{} {} gone or stopped ({})", fmt::join(silent, ", "), silent.size() == 1 ? "is" : "are", words);
  }
  if (slowest < after.size()) return fmt::format("{} is behind ({})", name(static_cast<int64_t>(slowest)), words);
  return fmt::format("the connection to another rank failed ({})", words);
}

/// The signs of life, and a look at those of trouble.
void Roster::Impl::work(Store& by) {
  std::unique_lock lock(mutex);
  for (int64_t beats = 1; !stopping; ++beats) {
    const auto question = asked;
    lock.unlock();
    std::optional<std::string> trouble;
    try {
      by.set(key_of("pulse", environment.rank), fmt::format("{} {}", beats, collectives.load()));
      trouble = by.get("failure");
      note_answer();
      if ((trouble || question) && !leaving) tell_and_end(by, trouble ? *trouble : blame(by, *question));
    } catch (const std::exception& error) {
      trouble = store_is_gone(question.value_or(plain(error)));
    }
    lock.lock();
    // At the end of the run the store may go before this one has stopped.
    if (stopping || leaving) return;
    if (trouble) end(*trouble);
    changed.wait_for(lock, period, [&] { return stopping || asked.has_value(); });
  }
}

Roster::Roster(const Environment& environment, const nlohmann::json& facts, Milliseconds timeout)
    : impl_(std::make_unique<Impl>(environment, timeout)) {
  auto& self = *impl_;
  self.join(facts);
  // The main thread's may be waiting for something.
  auto visitor = self.environment;
  visitor.rank = -1;
  std::shared_ptr<Store> own;
  try {
    own = std::make_shared<Store>(visitor, timeout);
  } catch (const std::exception& error) {
    self.end(self.store_is_gone(plain(error)));
  }
  self.pulse = std::thread([&self, own] { self.work(*own); });
}

Roster::~Roster() {
  auto& self = *impl_;
  {
    const std::lock_guard lock(self.mutex);
    self.stopping = true;
  }
  self.changed.notify_all();
  if (self.pulse.joinable()) self.pulse.join();
}

const std::vector<Roster::Member>& Roster::members() const {
  return impl_->members;
}

Store& Roster::store() {
  return *impl_->store;
}

void Roster::begin_start() {
  auto& self = *impl_;
  self.start_alarm = std::make_unique<Alarm>(self.timeout, [&self] {
    std::vector<std::string> places;
    for (const auto& member : self.members) places.push_back(member.address);
    self.end(fmt::format(
        "the ranks at {} did not connect with each other within {} s; set GLOO_SOCKET_IFNAME to the interface by which "
        "they reach each other",
        fmt::join(places, ", "), in_seconds(self.timeout)));
  });
}

void Roster::end_start() {
  impl_->start_alarm.reset();
}

Milliseconds Roster::patience() const {
  return std::max(impl_->timeout - impl_->look - 4 * impl_->period, impl_->timeout / 2);
}

void Roster::count() {
  ++impl_->collectives;
}

void Roster::fail(const std::string& words) {
  auto& self = *impl_;
  {
    const std::lock_guard lock(self.mutex);
    self.asked = first_line(words);
  }
  self.changed.notify_all();
  // The other thread ends the process, unless the store does not answer it.
  const auto last = Clock::now() + 2 * self.look + 8 * self.period + Milliseconds(3000);
  while (!self.store_is_silent() && Clock::now() < last) std::this_thread::sleep_for(Milliseconds(20));
  self.end(self.store_is_gone(first_line(words)));
}

void Roster::abandon(const std::string& reason) {
  auto& self = *impl_;
  self.leaving = true;
  try {
    self.tell(*self.store, fmt::format("{} ended: {}", self.name(self.environment.rank), first_line(reason)));
  } catch (const std::exception&) {
    // They will see it by themselves.
  }
}

void Roster::leave() {
  auto& self = *impl_;
  try {
    self.store->add("done", 1);
    const auto deadline = Clock::now() + self.timeout;
    while (self.store->add("done", 0) < self.environment.size && Clock::now() < deadline) {
      std::this_thread::sleep_for(Milliseconds(10));
    }
    {
      const std::lock_guard lock(self.mutex);
      self.stopping = true;
    }
    self.changed.notify_all();
    if (self.pulse.joinable()) self.pulse.join();
    self.store->add("left", 1);
    // The others have to hear the answer.
    const auto last = Clock::now() + std::min(self.timeout, Milliseconds(5000));
    while (self.keeps_store() && self.store->add("left", 0) < self.environment.size && Clock::now() < last) {
      std::this_thread::sleep_for(Milliseconds(10));
    }
  } catch (const std::exception&) {
    // The run is over, and rank 0 was faster.
  }
}

}  // namespace sgdph::lab::dist
