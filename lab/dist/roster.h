#pragma once

#include <nlohmann/json_fwd.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/c10d.h"
#include "dist/environment.h"

namespace sgdph::lab::dist {

/// Exit code of a process whose peers are gone or do not fit: starting again may help (EX_TEMPFAIL).
constexpr int kLostPeers = 75;

/// What must be the same everywhere, an object. Of several differences the first is told, so what others follow from
/// stands before them.
using Facts = nlohmann::ordered_json;

/// Who the ranks are, and whether all of them are alive. Each gives a sign of life to the store now and then from a
/// thread of its own; when something fails, the signs tell which rank is gone, and the store tells all the others,
/// which then end as well: with one line that names rank and host, and exit code 75.
class Roster {
 public:
  struct Member {
    std::string host;
    std::string address;  ///< where it listens for the others
  };

  /// Joins the others. A difference between `facts` ends all ranks, as does one that has not come when the time is
  /// over. From then on rank 0's timeout holds for all.
  Roster(const Environment& environment, const Facts& facts, Milliseconds timeout);
  ~Roster();
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  const std::vector<Member>& members() const;
  /// Of the main thread.
  Store& store();
  /// Further facts that must be the same everywhere, once rank 0 has given its own.
  void compare(const std::string& name, const Facts& facts);
  /// Waits until all ranks have come here; one that does not is named.
  void meet();
  /// Waits as long as all ranks are alive.
  void wait(const std::function<bool()>& done);
  /// Between the two the process is ended when the time is over.
  void begin_start();
  void end_start();
  /// What collectives may take, so that the message is out before the timeout.
  Milliseconds patience() const;

  /// A collective was begun: a rank that is behind is told by it.
  void count();
  /// The words of an error: finds out who is to blame, tells the others and ends the process.
  [[noreturn]] void fail(const std::string& words);
  /// The same between `begin_start` and `end_start`.
  [[noreturn]] void fail_start(const std::exception& error);
  /// This rank ends by itself, for this reason: tells the others.
  void abandon(const std::string& reason);
  /// The same, and at once.
  [[noreturn]] void give_up(const std::string& reason);
  /// Waits until all ranks are done. False if a thread is left behind that waits for the store.
  bool leave();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< the thread's as well, which is not waited for if the store does not answer it
};

/// Ends the process at once with one line on standard error; of several threads the first one speaks.
[[noreturn]] void end_process(const std::string& line);

}  // namespace sgdph::lab::dist
