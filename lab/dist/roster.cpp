#include "dist/roster.h"

#include "base/escape.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "dist/roster_impl.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstdio>

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

std::string are_gone(const std::vector<std::string>& silent, const std::string& words) {
  return fmt::format("{} {} gone or stopped ({})", fmt::join(silent, ", "), silent.size() == 1 ? "is" : "are", words);
}

std::terminate_handler usual_end = nullptr;

}  // namespace

void end_process(const std::string& line) {
  static std::mutex once;
  once.lock();                                    // never given back
  const auto shown = "sgdph: " + one_line(line);  // it may quote what another host has sent
  print(stderr, "{}{}\n", over_progress(), shown);
  std::fflush(nullptr);
  tell_launcher(shown);
  std::_Exit(kLostPeers);
}

std::atomic<Roster::Impl*> Roster::Impl::present{nullptr};

void Roster::Impl::watch_exceptions() {
  present = this;
  if (usual_end == nullptr) usual_end = std::set_terminate(end_by_exception);
}

void Roster::Impl::end_by_exception() {
  if (auto* impl = present.exchange(nullptr)) {
    std::string words = "an unknown error";
    try {
      if (const auto error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::exception& error) {
      words = plain(error);
    } catch (...) {
    }
    if (impl->members.empty()) impl->no_store(words);
    impl->ask_for_blame(words);
  }
  if (usual_end != nullptr) usual_end();
  std::abort();
}

std::vector<Pulse> Roster::Impl::pulses(Store& by) const {
  std::vector<Pulse> found;
  for (int64_t rank = 0; rank < environment.size; ++rank) found.push_back(pulse_from(by.get(key_of("pulse", rank))));
  return found;
}

std::vector<std::string> Roster::Impl::silent_between(
    const std::vector<Pulse>& before, const std::vector<Pulse>& after) const {
  std::vector<std::string> silent;
  for (size_t rank = 0; rank < after.size(); ++rank) {
    if (static_cast<int64_t>(rank) == environment.rank || before[rank].beats != after[rank].beats) continue;
    silent.push_back(name(static_cast<int64_t>(rank)));
  }
  return silent;
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
  const auto silent = silent_between(before, after);
  if (!silent.empty()) return are_gone(silent, words);
  int64_t fewest = collectives;
  size_t slowest = after.size();
  for (size_t rank = 0; rank < after.size(); ++rank) {
    if (static_cast<int64_t>(rank) == environment.rank) continue;
    if (after[rank].collectives >= fewest) continue;
    fewest = after[rank].collectives;
    slowest = rank;
  }
  if (slowest < after.size()) return fmt::format("{} is behind ({})", name(static_cast<int64_t>(slowest)), words);
  return starting ? words : fmt::format("the connection to another rank failed ({})", words);
}

/// Each rank looks at the next one's signs of life, whether or not they meet: a collective need not notice that a rank
/// is gone, NCCL's on a GPU above all. Empty as long as they come.
std::string Roster::Impl::silent_neighbour(Store& by) {
  const auto next = (environment.rank + 1) % environment.size;
  auto pulse = by.get(key_of("pulse", next)).value_or("");
  if (pulse != neighbours_pulse) {
    neighbours_pulse = std::move(pulse);
    heard = Clock::now();
  }
  return Clock::now() - heard < patience() ? "" : are_gone({name(next)}, "no sign of life");
}

/// The signs of life, and a look at those of trouble.
void Roster::Impl::work(Store& by) {
  const auto alarm = watch_store();
  heard = Clock::now();
  std::unique_lock lock(mutex);
  for (int64_t beats = 1; !stopping; ++beats) {
    const auto question = asked;
    lock.unlock();
    std::optional<std::string> trouble;
    try {
      by.set(key_of("pulse", environment.rank), fmt::format("{} {}", beats, collectives.load()));
      trouble = by.get("failure");
      if (const auto silent = silent_neighbour(by); !trouble && !silent.empty()) trouble = silent;
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
  lock.unlock();
  try {
    if (!leaving) by.add("left", 1);
  } catch (const std::exception&) {
    // Rank 0 was faster.
  }
}

Roster::Roster(const Environment& environment, const Facts& facts, Milliseconds timeout)
    : impl_(std::make_unique<Impl>(environment, timeout)) {
  check_built_for(environment);
  auto& self = *impl_;
  self.watch_exceptions();
  self.join(facts);
  const auto alarm = self.watch_store();
  // The main thread's may be waiting for something.
  auto visitor = self.environment;
  visitor.rank = -1;
  std::shared_ptr<Store> own;
  try {
    own = std::make_shared<Store>(visitor, self.timeout);
  } catch (const std::exception& error) {
    self.end(self.store_is_gone(plain(error)));
  }
  self.note_answer();
  self.ended = false;
  // Never joined: the store may keep it.
  std::thread([impl = impl_, own = std::move(own)]() mutable {
    impl->work(*own);
    own.reset();
    {
      const std::lock_guard lock(impl->mutex);
      impl->ended = true;
    }
    impl->changed.notify_all();
  }).detach();
}

/// Whether it has ended.
bool Roster::Impl::stop_pulse(Milliseconds time) {
  std::unique_lock lock(mutex);
  stopping = true;
  changed.notify_all();
  return changed.wait_for(lock, time, [this] { return ended; });
}

Roster::~Roster() {
  Impl::present = nullptr;
  impl_->stop_pulse(Milliseconds(1000));
}

const std::vector<Roster::Member>& Roster::members() const {
  return impl_->members;
}

Store& Roster::store() {
  return *impl_->store;
}

void Roster::begin_start() {
  auto& self = *impl_;
  self.starting = true;
  self.start_alarm = std::make_unique<Alarm>(self.patience(), [&self] {
    self.ask_for_blame(self.not_connected(fmt::format("not within {} s", in_seconds(self.timeout))));
  });
}

std::string Roster::Impl::not_connected(const std::string& words) const {
  std::vector<std::string> places;
  for (const auto& member : members) places.push_back(member.address);
  return fmt::format(
      "the ranks at {} could not connect with each other ({}); set GLOO_SOCKET_IFNAME to the interface by which they "
      "reach each other",
      fmt::join(places, ", "), words);
}

void Roster::fail_start(const std::exception& error) {
  impl_->ask_for_blame(impl_->not_connected(plain(error)));
}

void Roster::end_start() {
  impl_->start_alarm.reset();
  impl_->starting = false;
}

Milliseconds Roster::patience() const {
  return impl_->patience();
}

void Roster::count() {
  ++impl_->collectives;
}

void Roster::fail(const std::string& words) {
  impl_->ask_for_blame(plain(words));
}

void Roster::Impl::ask_for_blame(const std::string& words) {
  {
    const std::lock_guard lock(mutex);
    asked = first_line(words);
  }
  changed.notify_all();
  // The other thread ends the process, unless the store does not answer it.
  const auto last = Clock::now() + 2 * look + 8 * period + Milliseconds(3000);
  while (!store_is_silent() && Clock::now() < last) std::this_thread::sleep_for(Milliseconds(20));
  end(store_is_gone(first_line(words)));
}

void Roster::Impl::tell_own_end(const std::string& reason) {
  leaving = true;
  // What a process of this rank said of another one stands as it is.
  const auto prefix = self() + ": ";
  const auto words = first_line(reason);
  const bool of_others = words.rfind(prefix, 0) == 0;
  try {
    tell(*store, of_others ? words.substr(prefix.size()) : fmt::format("{} ended: {}", name(environment.rank), words));
  } catch (const std::exception&) {
    // They will see it by themselves.
  }
}

void Roster::abandon(const std::string& reason) {
  impl_->tell_own_end(reason);
}

void Roster::give_up(const std::string& reason) {
  impl_->tell_own_end(reason);
  impl_->end(first_line(reason));
}

void Roster::wait(const std::function<bool()>& done) {
  auto& self = *impl_;
  try {
    auto next_look = Clock::now() + self.patience();
    while (!done()) {
      std::this_thread::sleep_for(Milliseconds(10));
      if (Clock::now() < next_look) continue;
      const auto before = self.pulses(*self.store);
      std::this_thread::sleep_for(self.look);
      const auto silent = self.silent_between(before, self.pulses(*self.store));
      if (!silent.empty()) self.tell_and_end(*self.store, are_gone(silent, "no sign of life"));
      next_look = Clock::now() + self.patience();
    }
  } catch (const std::exception& error) {
    fail(plain(error));
  }
}

void Roster::meet() {
  auto& self = *impl_;
  const auto deadline = Clock::now() + self.patience();
  try {
    self.store->set(key_of("ready", self.environment.rank), "");
    self.store->add("ready", 1);
    while (self.store->add("ready", 0) < self.environment.size) {
      if (Clock::now() > deadline) {
        std::vector<std::string> late;
        for (const auto rank : self.missing("ready")) late.push_back(self.name(rank));
        fail(fmt::format("{} not ready within {} s", fmt::join(late, ", "), in_seconds(self.timeout)));
      }
      std::this_thread::sleep_for(Milliseconds(10));
    }
  } catch (const std::exception& error) {
    fail(plain(error));
  }
}

bool Roster::leave() {
  auto& self = *impl_;
  bool counted = false;
  wait([&] { return self.store->add("done", std::exchange(counted, true) ? 0 : 1) >= self.environment.size; });
  // All are done: from here on nothing is lost, and only rank 0, which has the store within itself, may ask it.
  const auto time = std::min(self.timeout, Milliseconds(5000));
  const bool ended = self.stop_pulse(time);
  try {
    // The others have to hear the answer.
    const auto last = Clock::now() + time;
    while (self.keeps_store() && self.store->add("left", 0) < self.environment.size && Clock::now() < last) {
      std::this_thread::sleep_for(Milliseconds(10));
    }
  } catch (const std::exception&) {
    // The run is over all the same.
  }
  return ended;
}

}  // namespace sgdph::lab::dist
