#pragma once

// Shared by the sources of Roster alone.

#include "dist/address.h"
#include "dist/roster.h"

#include <fmt/ranges.h>
#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sgdph::lab::dist {

using Clock = std::chrono::steady_clock;

inline double in_seconds(Milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The first line of a long story.
inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// c10d's words without the place in its source before them.
inline std::string plain(const std::string& words) {
  auto text = first_line(words);
  if (text.rfind('[', 0) == 0 && text.find("] ") != std::string::npos) text = text.substr(text.find("] ") + 2);
  return text;
}
inline std::string plain(const std::exception& error) {
  return plain(std::string(error.what()));
}

inline std::string key_of(const char* what, int64_t rank) {
  return fmt::format("{}/{}", what, rank);
}

/// What a rank says of itself, and did.
struct Pulse {
  std::string beats;
  int64_t collectives = 0;
};

/// What ends the process if it is not called off in time: c10d waits without end in places.
class Alarm {
 public:
  /// `when`: may be put off.
  Alarm(std::function<Clock::time_point()> when, std::function<void()> ring)
      : thread_([this, when = std::move(when), ring = std::move(ring)] {
          std::unique_lock lock(mutex_);
          while (!off_ && Clock::now() < when()) changed_.wait_until(lock, when(), [this] { return off_; });
          const bool late = !off_;
          lock.unlock();
          if (late) ring();
        }) {}
  Alarm(Milliseconds time, std::function<void()> ring)
      : Alarm([deadline = Clock::now() + time] { return deadline; }, std::move(ring)) {}
  ~Alarm() {
    {
      const std::lock_guard lock(mutex_);
      off_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool off_ = false;
  std::thread thread_;
};

struct Roster::Impl {
  Impl(Environment where, Milliseconds time) : environment(std::move(where)) { set_timeout(time); }

  Environment environment;
  Milliseconds timeout{};
  Milliseconds period{};         ///< between signs of life
  Milliseconds look{};           ///< how long a rank is looked at before it is said to be gone
  std::unique_ptr<Store> store;  ///< of the main thread
  std::vector<Member> members;
  std::unique_ptr<Alarm> start_alarm;
  std::atomic<bool> starting{false};  ///< the ranks connect
  std::atomic<int64_t> collectives{0};
  std::atomic<Clock::rep> answered{
      Clock::now().time_since_epoch().count()};  ///< when the store last did, to the thread

  std::string neighbours_pulse;  ///< of the thread
  Clock::time_point heard;       ///< when it changed last

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  std::atomic<bool> stopping{false};  ///< all ranks are done
  bool ended = true;                  ///< the thread
  std::atomic<bool> leaving{false};   ///< for a reason of its own, which the others are told
  std::optional<std::string> asked;   ///< the main thread wants to know who is to blame for this

  void set_timeout(Milliseconds time) {
    timeout = time;
    period = std::clamp(timeout / 20, Milliseconds(50), Milliseconds(1000));
    look = std::max(3 * period, Milliseconds(700));
  }
  /// So that the message is out before the timeout.
  Milliseconds patience() const { return std::max(timeout - look - 4 * period, timeout / 2); }

  std::string name(int64_t rank) const {
    const auto known = static_cast<size_t>(rank) < members.size();
    return known ? fmt::format("rank {} on {}", rank, members[static_cast<size_t>(rank)].host)
                 : fmt::format("rank {}", rank);
  }
  std::string self() const {
    return fmt::format("rank {} of {} on {}", environment.rank, environment.size, host_name());
  }
  std::string place() const { return fmt::format("{}:{}", environment.address, environment.port); }
  bool keeps_store() const { return environment.rank == 0 && !environment.launcher_has_store; }
  std::string keeper() const { return environment.launcher_has_store ? environment.launcher : "rank 0"; }

  [[noreturn]] void end(const std::string& text) const { end_process(self() + ": " + text); }

  /// Tells the others why this one ends, unless somebody told them something before: then that is the reason.
  std::string tell(Store& by, std::string text) const {
    if (by.add("failures", 1) == 1) {
      by.set("failure", text);
    } else if (const auto before = by.get("failure")) {
      text = *before;
    }
    // With this process the store goes, and the others have to read it before.
    if (keeps_store()) std::this_thread::sleep_for(3 * period);
    return text;
  }
  [[noreturn]] void tell_and_end(Store& by, const std::string& text) const {
    std::string told = text;
    try {
      told = tell(by, text);
    } catch (const std::exception&) {
      // Whoever keeps the store is gone as well.
    }
    end(told);
  }

  std::string store_is_gone(const std::string& words) const {
    return environment.launcher_has_store
               ? fmt::format("the store of {} at {} does not answer ({})", environment.launcher, place(), words)
               : fmt::format("{}, which keeps the store at {}, is gone or stopped ({})", name(0), place(), words);
  }

  std::string own_address() const {
    const auto* interfaces = std::getenv(kInterfaces);
    return interfaces_of(interfaces).empty() ? address_towards(environment.address)
                                             : fmt::format("interface {}", interfaces);
  }
  void join(Facts facts);
  void wait_for_listener() const;
  void open_store();
  void meet_store() const;
  [[noreturn]] void no_store(const std::string& words) const;
  std::string wait_at_start(const std::string& key, Clock::time_point deadline);
  void check_same(const Facts& first, const Facts& own);
  std::vector<int64_t> missing(const char* what);
  [[noreturn]] void end_missing();
  void check_addresses() const;

  /// Rings when the store has not answered for so long.
  std::unique_ptr<Alarm> watch_store() {
    return std::make_unique<Alarm>(
        [this] { return Clock::time_point(Clock::duration(answered.load())) + timeout; },
        [this] {
          if (!stopping) end(store_is_gone(fmt::format("no answer within {} s", in_seconds(timeout))));
        });
  }
  void note_answer() { answered = Clock::now().time_since_epoch().count(); }
  bool store_is_silent() const {
    return Clock::now().time_since_epoch() - Clock::duration(answered.load()) > look + 2 * period;
  }

  void work(Store& by);
  std::string silent_neighbour(Store& by);
  std::vector<Pulse> pulses(Store& by) const;
  std::vector<std::string> silent_between(const std::vector<Pulse>& before, const std::vector<Pulse>& after) const;
  std::string blame(Store& by, const std::string& words);
  [[noreturn]] void ask_for_blame(const std::string& words);
  std::string not_connected(const std::string& words) const;

  static std::atomic<Impl*> present;
  /// Threads of c10d throw where nobody catches, if ranks send each other what does not fit, or a stranger anything.
  void watch_exceptions();
  [[noreturn]] static void end_by_exception();
  bool stop_pulse(Milliseconds time);
  void tell_own_end(const std::string& reason);
};

}  // namespace sgdph::lab::dist
