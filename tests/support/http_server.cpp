#include "support/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace sgdph::test {
namespace {

using Headers = std::map<std::string, std::string>;

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string read_request(int connection) {
  std::string text;
  char piece[4096];
  while (text.find("\r\n\r\n") == std::string::npos) {
    pollfd ready{connection, POLLIN, 0};
    if (::poll(&ready, 1, 5000) <= 0) return "";
    const auto count = ::recv(connection, piece, sizeof(piece), 0);
    if (count <= 0) return "";
    text.append(piece, static_cast<size_t>(count));
  }
  return text;
}

Headers parse_headers(const std::string& request) {
  Headers headers;
  for (size_t begin = request.find("\r\n") + 2; begin < request.size();) {
    const auto end = request.find("\r\n", begin);
    const auto colon = request.find(':', begin);
    if (end == begin || colon == std::string::npos) break;
    auto name = request.substr(begin, colon - begin);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto first = request.find_first_not_of(' ', colon + 1);
    headers[name] = request.substr(first, end - first);
    begin = end + 2;
  }
  return headers;
}

std::string head(int status, const std::vector<std::pair<std::string, std::string>>& headers) {
  auto text = "HTTP/1.1 " + std::to_string(status) + " Status\r\nConnection: close\r\n";
  for (const auto& [name, value] : headers) {
    if (!value.empty()) text += name + ": " + value + "\r\n";
  }
  return text + "\r\n";
}

}  // namespace

HttpServer::HttpServer() {
  // A proxy of the environment would be asked for our own machine.
  ::setenv("no_proxy", "127.0.0.1", 1);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
  for (const int connection : stalled_) ::close(connection);
}

std::string HttpServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

void HttpServer::serve(const std::string& path, HttpResource resource) {
  const std::lock_guard lock(mutex_);
  entries_[path].resource = std::move(resource);
}

int64_t HttpServer::requests(const std::string& path) const {
  return static_cast<int64_t>(ranges(path).size());
}

int64_t HttpServer::body_bytes(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(path);
  return found == entries_.end() ? 0 : found->second.body_bytes;
}

std::vector<std::string> HttpServer::ranges(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(path);
  return found == entries_.end() ? std::vector<std::string>{} : found->second.ranges;
}

void HttpServer::run() {
  while (!stopping_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) answer(connection);
  }
}

void HttpServer::answer(int connection) {
  const auto request = read_request(connection);
  const auto begin = request.find(' ') + 1;
  const auto path = request.empty() ? "" : request.substr(begin, request.find(' ', begin) - begin);
  const auto headers = request.empty() ? Headers{} : parse_headers(request);
  const auto header = [&](const char* name) { return headers.count(name) == 0 ? "" : headers.at(name); };

  int status = 404;
  bool cut = false;
  HttpResource resource;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(path);
    if (found != entries_.end()) {
      auto& entry = found->second;
      entry.ranges.push_back(header("range"));
      status = 200;
      if (!entry.resource.statuses.empty()) {
        status = entry.resource.statuses.front();
        entry.resource.statuses.erase(entry.resource.statuses.begin());
      } else if (entry.resource.cut_after >= 0 && entry.resource.cuts > 0) {
        cut = true;
        --entry.resource.cuts;
      }
      resource = entry.resource;
    }
  }

  std::string_view body = resource.body;
  std::string range;
  const auto condition = header("if-range");
  const bool same = condition.empty() || condition == resource.etag || condition == resource.last_modified;
  if (status == 200 && !resource.redirect.empty()) {
    status = 302;
  } else if (status == 200 && resource.ranges && same && header("range").rfind("bytes=", 0) == 0) {
    const auto first = static_cast<size_t>(std::atoll(header("range").c_str() + 6));
    const auto total = std::to_string(body.size());
    status = first < body.size() ? 206 : 416;
    range = status == 416 ? "bytes */" + total
                          : "bytes " + std::to_string(first) + "-" + std::to_string(body.size() - 1) + "/" + total;
    if (!resource.content_range.empty()) range = resource.content_range;
    body.remove_prefix(std::min(first, body.size()));
  }
  if (status != 200 && status != 206) body = "an error page, which is no part of any file";
  const auto length =
      resource.claimed_bytes >= 0 && status == 200 ? resource.claimed_bytes : static_cast<int64_t>(body.size());
  const auto answer_head = head(
      status, {{"Content-Length", std::to_string(length)},
               {"Content-Range", range},
               {"ETag", resource.etag},
               {"Last-Modified", resource.last_modified},
               {"Location", resource.redirect}});
  const bool sent = !request.empty() && send_all(connection, answer_head);
  if (!sent || !send_body(connection, resource, body, status < 300 ? path : "", cut)) {
    ::close(connection);
  } else {
    stalled_.push_back(connection);
  }
}

/// Whether the connection is to stay open.
bool HttpServer::send_body(
    int connection, const HttpResource& resource, std::string_view body, const std::string& path, bool cut) {
  const auto limit = static_cast<size_t>(cut ? resource.cut_after : resource.stall_after);
  if (!path.empty() && (cut || resource.stall_after >= 0)) body = body.substr(0, limit);
  while (!body.empty() && !stopping_) {
    const auto piece = body.substr(0, static_cast<size_t>(resource.piece));
    if (!send_all(connection, piece)) return false;
    body.remove_prefix(piece.size());
    {
      const std::lock_guard lock(mutex_);
      if (!path.empty()) entries_[path].body_bytes += static_cast<int64_t>(piece.size());
    }
    if (resource.milliseconds_per_piece > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(resource.milliseconds_per_piece));
    }
  }
  return !path.empty() && !cut && resource.stall_after >= 0;
}

}  // namespace sgdph::test
