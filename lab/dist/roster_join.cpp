// How ranks come together: everything that may end a start is said by name.

#include "base/error.h"
#include "dist/roster_impl.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace sgdph::lab::dist {
namespace {

constexpr const char* kOtherTorchrun =
    "if torchrun is of another PyTorch version than this program, set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and use "
    "--rdzv-backend=c10d or --standalone";
constexpr Milliseconds kFirstAnswer{20000};
// Rank 0 listens for a moment to find itself, and what forwards to it may be there before it.
constexpr Milliseconds kHangUps{3000};
constexpr int64_t kMostVisitors = 1 << 30;

/// The first thing that two ranks do not agree about; empty if there is none.
std::string difference(
    const Facts& first, const Facts& other, const std::string& who_first, const std::string& who_other) {
  const auto shown = [](const Facts& facts, const std::string& key) {
    return facts.contains(key) ? facts.at(key).dump() : "not set";
  };
  auto all = first;
  all.update(other);
  for (const auto& item : all.items()) {
    const auto here = shown(first, item.key());
    const auto there = shown(other, item.key());
    if (here == there) continue;
    return fmt::format(
        "{} is {} on {} and {} on {}; all ranks need the same", item.key(), here, who_first, there, who_other);
  }
  return "";
}

}  // namespace

void Roster::Impl::wait_for_listener() const {
  const auto deadline = Clock::now() + timeout;
  while (!is_listening(environment.address, environment.port)) {
    if (Clock::now() > deadline) {
      end(fmt::format(
          "{} did not come: nobody listens at {} within {} s; is the command running there, with this MASTER_ADDR and "
          "MASTER_PORT?",
          keeper(), place(), in_seconds(timeout)));
    }
    std::this_thread::sleep_for(Milliseconds(20));
  }
}

/// c10d would try again and again, from 2.x on with a page of warnings each time.
void Roster::Impl::meet_store() const {
  const auto deadline = Clock::now() + kHangUps;
  for (;;) {
    wait_for_listener();
    const auto heard = heard_unasked(environment.address, environment.port);
    if (heard == Unasked::Silent) return;
    if (heard == Unasked::Speaks) no_store("it speaks before it is asked");
    if (Clock::now() > deadline) no_store("it hangs up before it is asked");
    std::this_thread::sleep_for(Milliseconds(100));
  }
}

void Roster::Impl::no_store(const std::string& words) const {
  end(fmt::format(
      "what listens at {} is not the store of {} ({}); {}", place(), keeper(), words,
      environment.launcher_has_store
          ? kOtherTorchrun
          : "is another program at this port, or another version of LibTorch on one of the hosts?"));
}

void Roster::Impl::open_store() {
  if (keeps_store() && is_taken(environment.port)) {
    end(fmt::format("port {} is taken on this host; choose another MASTER_PORT", environment.port));
  }
  try {
    resolve(environment.address);
    if (keeps_store() && !reaches_itself(environment.address, environment.port)) {
      end(fmt::format(
          "MASTER_ADDR is {}, which is not this host, where rank 0 runs; give all ranks an address of this one: {}",
          environment.address, fmt::join(own_addresses(), ", ")));
    }
    if (!keeps_store()) meet_store();
  } catch (const std::exception& error) {
    end(fmt::format("cannot find {} ({})", keeper(), plain(error)));
  }
  // A store answers at once, whatever its process does.
  const auto time = std::min(timeout, kFirstAnswer);
  const Alarm alarm(time, [&] { no_store(fmt::format("no answer within {} s", in_seconds(time))); });
  try {
    store = std::make_unique<Store>(environment, timeout);
    // The first word, which another protocol would not answer, or with anything.
    const auto visitors = store->add("visitors", 1);
    if (visitors < 1 || visitors > kMostVisitors) no_store("its answer makes no sense");
  } catch (const std::exception& error) {
    const auto text = plain(error);
    if (text.find("in use") != std::string::npos) {
      end(fmt::format("port {} is taken on this host ({}); choose another MASTER_PORT", environment.port, text));
    }
    no_store(text);
  }
}

std::vector<int64_t> Roster::Impl::missing(const char* what) {
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < environment.size; ++rank) {
    if (!store->get(key_of(what, rank))) ranks.push_back(rank);
    note_answer();
  }
  return ranks;
}

void Roster::Impl::end_missing() {
  auto ranks = missing("arrivals");
  const bool came = ranks.empty();
  if (came) ranks = missing("member");
  tell_and_end(
      *store, fmt::format(
                  "{} {} of {} {} {} within {} s; is the command running there, with this MASTER_ADDR and MASTER_PORT?",
                  ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), environment.size,
                  came ? "said no more at" : "did not come to", place(), in_seconds(timeout)));
}

/// Ends all ranks if this one does not agree with rank 0.
void Roster::Impl::check_same(const Facts& first, const Facts& own) {
  const auto differs = difference(
      first.at("facts"), own, "rank 0 on " + first.at("host").get<std::string>(),
      fmt::format("rank {} on {}", environment.rank, host_name()));
  if (!differs.empty()) tell_and_end(*store, differs);
}

std::string Roster::Impl::wait_at_start(const std::string& key, Clock::time_point deadline) {
  for (;;) {
    if (auto text = store->get(key)) return *text;
    if (const auto failure = store->get("failure")) tell_and_end(*store, *failure);
    note_answer();
    if (Clock::now() > deadline) end_missing();
    std::this_thread::sleep_for(Milliseconds(20));
  }
}

void Roster::Impl::check_addresses() const {
  const auto local = [](const Member& member) { return is_loopback(member.address); };
  const auto inside = std::find_if(members.begin(), members.end(), local);
  // Where those listen that name an interface is found out when they connect.
  const auto outside = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return !local(member) && member.address.rfind("interface ", 0) != 0;
  });
  if (inside == members.end() || outside == members.end()) return;
  end(fmt::format(
      "{} would listen at {}, which {} at {} cannot reach; give MASTER_ADDR as an address, since its name is the host "
      "itself in /etc/hosts there, or set GLOO_SOCKET_IFNAME",
      name(inside - members.begin()), inside->address, name(outside - members.begin()), outside->address));
}

void Roster::Impl::join(Facts facts) {
  const auto deadline = Clock::now() + timeout;
  open_store();
  note_answer();
  const auto alarm = watch_store();
  facts["the number of ranks"] = environment.size;
  // What is met here and is no failure of the others is a lost store.
  try {
    // It is left alone: what is told in its store would end it.
    if (environment.rank != 0 && store->get("roster")) {
      end(fmt::format("another run is under way at {} already; choose another MASTER_PORT", place()));
    }
    if (store->add(key_of("arrivals", environment.rank), 1) != 1) {
      end(fmt::format(
          "there is a rank {} at {} already; another run uses this port, or two processes have the same RANK",
          environment.rank, place()));
    }
    const Facts own{{"host", host_name()}, {"address", own_address()}, {"facts", facts}, {"timeout", timeout.count()}};
    auto list = nlohmann::json::array();
    if (environment.rank == 0) {
      store->set(key_of("member", 0), own.dump());
      for (int64_t rank = 0; rank < environment.size; ++rank) {
        const auto member = nlohmann::json::parse(wait_at_start(key_of("member", rank), deadline));
        list.push_back({{"host", member.at("host")}, {"address", member.at("address")}});
      }
      store->set("roster", list.dump());
    } else {
      // Who does not fit says so, and is no member.
      const auto first = Facts::parse(wait_at_start(key_of("member", 0), deadline));
      check_same(first, facts);
      set_timeout(Milliseconds(first.at("timeout").get<int64_t>()));
      store->set(key_of("member", environment.rank), own.dump());
      list = nlohmann::json::parse(wait_at_start("roster", deadline));
    }
    for (const auto& one : list) {
      members.push_back({one.at("host").get<std::string>(), one.at("address").get<std::string>()});
    }
  } catch (const UserError& error) {  // in GLOO_SOCKET_IFNAME
    tell_own_end(error.what());
    end(first_line(error.what()));
  } catch (const std::exception& error) {
    end(store_is_gone(plain(error)));
  }
  note_answer();
  check_addresses();
}

void Roster::compare(const std::string& name, const Facts& facts) {
  auto& self = *impl_;
  const auto key = "facts/" + name;
  if (self.environment.rank == 0) {
    try {
      self.store->set(key, Facts{{"host", host_name()}, {"facts", facts}}.dump());
    } catch (const std::exception& error) {
      fail(plain(error));
    }
    return;
  }
  std::optional<std::string> first;
  wait([&] { return (first = self.store->get(key)).has_value(); });
  self.check_same(Facts::parse(*first), facts);
}

}  // namespace sgdph::lab::dist
