#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgdph::lab::dist {

/// A numeric address of the host; throws if its name does not resolve. c10d only says that time is over.
std::string resolve(const std::string& host);

/// This host's address on the way to another one, found without sending anything. The name of this host will not do:
/// Debian's /etc/hosts maps it to a loopback address.
std::string address_towards(const std::string& host);

/// A port of this host that nobody has now.
int64_t free_port();

/// Of this host, without those that are for itself alone.
std::vector<std::string> own_addresses();

/// Whether what listens at this port here is found by that name. A name may lead here by way of another host, which is
/// tried by listening for a moment.
bool reaches_itself(const std::string& host, int64_t port);

/// Whether another program has this port of this host already.
bool is_taken(int64_t port);

/// Whether anybody listens at this port of a host. Waits for its answer a second or two at most.
bool is_listening(const std::string& host, int64_t port);

/// What listens there does before it is asked. A store of c10d is silent.
enum class Unasked { Silent, Speaks, HangsUp };
Unasked heard_unasked(const std::string& host, int64_t port);

bool is_loopback(const std::string& address);

/// The variable with the interfaces to use, which c10d reads in Python only.
constexpr const char* kInterfaces = "GLOO_SOCKET_IFNAME";
/// Names with commas between.
std::vector<std::string> interfaces_of(const char* text);

/// Throws if this host has no such interface, with those it has.
void check_interface(const std::string& name);

}  // namespace sgdph::lab::dist
