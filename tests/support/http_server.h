#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sgdph::test {

/// What a server does with one path, and how it misbehaves.
struct HttpResource {
  std::string body;
  std::string etag = "\"1\"";
  std::string last_modified;
  bool ranges = true;                  ///< false: ignores Range and sends everything
  std::vector<int> statuses;           ///< answers to the first requests, before any other
  int64_t cut_after = -1;              ///< closes the connection after so many bytes of a body ...
  int64_t cuts = 1;                    ///< ... of so many answers
  int64_t stall_after = -1;            ///< sends no more after so many bytes, and keeps the connection open
  int64_t claimed_bytes = -1;          ///< Content-Length instead of the truth
  std::string redirect;                ///< Location of a 302
  std::string content_range;           ///< instead of the true one
  int64_t piece = int64_t{1} << 16;    ///< bytes sent at a time ...
  int64_t milliseconds_per_piece = 0;  ///< ... and the pause after them
};

/// A small HTTP/1.1 server on 127.0.0.1, one connection at a time, that can be told to fail.
class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url(const std::string& path) const;
  void serve(const std::string& path, HttpResource resource);

  int64_t requests(const std::string& path) const;
  /// Of bodies that were sent with 200 or 206.
  int64_t body_bytes(const std::string& path) const;
  /// The Range header of each request, empty where there was none.
  std::vector<std::string> ranges(const std::string& path) const;

 private:
  struct Entry {
    HttpResource resource;
    int64_t body_bytes = 0;
    std::vector<std::string> ranges;
  };

  void run();
  void answer(int connection);
  bool send_body(
      int connection, const HttpResource& resource, std::string_view body, const std::string& path, bool cut);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<int> stalled_;  // of the server's thread; closed with it
  std::thread thread_;
};

}  // namespace sgdph::test
