#pragma once

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/c10d.h"
#include "dist/environment.h"
#include "dist/roster.h"

namespace sgdph::lab::dist {

struct GroupOptions {
  double timeout = 300;           ///< seconds until a silent rank is given up
  Facts facts = Facts::object();  ///< what all ranks must agree about
};

/// The processes that work together, each with a rank. A group of one serves a single process: nothing is sent, and
/// everything returns at once. What fails in a larger one ends the process, with a line that names the rank to blame
/// (see Roster). Methods with tensors are collective: every rank calls them, in the same order.
class Group {
 public:
  /// Of one.
  Group() = default;
  /// Joins the others and compares facts. Words may be sent from then on; tensors need a connection.
  Group(Environment environment, const GroupOptions& options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int64_t rank() const { return environment_.rank; }
  int64_t size() const { return environment_.size; }
  bool alone() const { return environment_.alone(); }
  /// The one that writes and speaks.
  bool is_first() const { return rank() == 0; }
  const Environment& environment() const { return environment_; }
  /// By rank.
  std::vector<std::string> hosts() const;

  /// Further facts that all ranks must agree about, which a rank does not know when it joins. Before `connect`.
  void compare(const std::string& name, const Facts& facts);

  /// By Gloo for tensors on the CPU, or by NCCL for those on this rank's CUDA device. Collective, once.
  void connect(bool cuda = false);

  /// The sum over ranks, in place; to be waited for, and the tensor left alone until then.
  Wait begin_sum(at::Tensor& tensor);
  void sum(at::Tensor& tensor);
  /// Rank 0's.
  void broadcast(at::Tensor& tensor);
  void broadcast(std::string& bytes);
  /// Every rank's figure, by rank.
  std::vector<double> gather(double figure);
  bool any(bool one);

  /// Words for all ranks, not collective: nothing yet if nobody has given them.
  void post(const std::string& key, const std::string& words);
  std::optional<std::string> find(const std::string& key);
  /// `meanwhile`: is called now and then.
  std::string wait_for(const std::string& key, const std::function<void()>& meanwhile = nullptr);

  /// What rank 0 finds, for all ranks.
  template <class Find>
  nlohmann::json agree(const std::string& key, const Find& find) {
    if (!is_first()) return nlohmann::json::parse(wait_for(key));
    nlohmann::json found = find();
    if (!alone()) post(key, found.dump());
    return found;
  }

  /// Seconds spent waiting in collectives, and how many there were.
  double waited() const { return waited_; }
  int64_t collectives() const { return begun_; }

  /// This rank ends for a reason of its own, and tells the others.
  void abandon(const std::string& reason);
  /// Whether a group of this process was left in disorder, so that its end must not wait for threads of c10d.
  static bool was_abandoned();

 private:
  void waiting(const Wait& wait);

  Environment environment_;
  std::unique_ptr<Roster> roster_;
  std::unique_ptr<Collectives> collectives_;
  at::Device device_ = at::kCPU;
  double waited_ = 0;
  std::atomic<int64_t> begun_{0};
};

/// Work of a rank: an error of its own is told to the others, and goes on its way.
template <class Body>
auto guarded(Group& group, const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    group.abandon(error.what());
    throw;
  }
}

}  // namespace sgdph::lab::dist
