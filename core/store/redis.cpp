#include "core/store/redis.h"

#include <cerrno>
#include <cstring>

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace partita {
namespace {

using Deadline = RedisConnection::Deadline;
constexpr std::size_t most_bytes = std::size_t{256} << 20;  ///< of an answer

Diagnostic failed(std::string why) {
  return input_error("team.server", std::move(why));
}

std::chrono::milliseconds left(Deadline deadline) {
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(time, std::chrono::milliseconds(0));
}

/// Waits until the socket takes or has bytes.
Status wait(int socket, short events, Deadline deadline) {
  while (true) {
    const auto time = left(deadline);
    pollfd one{socket, events, 0};
    const int ready = time.count() > 0 ? ::poll(&one, 1, static_cast<int>(time.count())) : 0;
    if (ready > 0) return {};
    if (ready == 0) return failed("no answer in time");
    if (errno != EINTR) return failed(std::strerror(errno));
  }
}

/// Does what connect() does.
Status connect_to(int socket, const sockaddr* address, socklen_t size, Deadline deadline) {
  if (::connect(socket, address, size) == 0) return {};
  if (errno != EINPROGRESS) return failed(std::strerror(errno));
  TRY_DO(wait(socket, POLLOUT, deadline));
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? Status() : failed(std::strerror(error));
}

Result<Descriptor> open_socket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return failed(std::strerror(errno));
  return socket;
}

Result<Descriptor> connect_to_path(const std::string& path, Deadline deadline) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return failed("the path is too long for a socket");
  path.copy(address.sun_path, path.size());
  TRY(Descriptor socket, open_socket(AF_UNIX));
  TRY_DO(connect_to(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline));
  return socket;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// The addresses of a host. The names' server may not answer, so it is asked apart from this thread.
Result<Addresses> resolve(const std::string& host, const std::string& port, Deadline deadline) {
  struct Question {
    std::string host, port;
    addrinfo hints = {};
    gaicb request = {};
  };
  auto question = std::make_unique<Question>(Question{host, port});
  question->hints.ai_socktype = SOCK_STREAM;
  question->request.ar_name = question->host.c_str();
  question->request.ar_service = question->port.c_str();
  question->request.ar_request = &question->hints;
  gaicb* list[] = {&question->request};
  if (::getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr) != 0) return failed("no thread to find its address");
  int state;
  while ((state = ::gai_error(list[0])) == EAI_INPROGRESS) {
    const auto time = left(deadline);
    const timespec rest = {time.count() / 1000, time.count() % 1000 * 1'000'000};
    const gaicb* waited[] = {list[0]};
    if (time.count() > 0 && ::gai_suspend(waited, 1, &rest) != EAI_AGAIN) continue;
    if (::gai_cancel(list[0]) == EAI_NOTCANCELED) (void)question.release();  // a thread still writes to it
    return failed("its name is not found in time");
  }
  if (state != 0) return failed(::gai_strerror(state));
  return Addresses(question->request.ar_result, ::freeaddrinfo);
}

Result<Descriptor> connect_to_host(const std::string& host, const std::string& port, Deadline deadline) {
  TRY(const Addresses addresses, resolve(host, port, deadline));
  Diagnostic last = failed("it has no address");
  for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
    TRY(Descriptor socket, open_socket(at->ai_family));
    const Status connected = connect_to(socket.get(), at->ai_addr, at->ai_addrlen, deadline);
    if (connected) return socket;
    last = connected.error();
  }
  return last;
}

/// What the reader makes of an answer. Lists are refused: no command that is sent is answered by one.
struct Answer {
  int type;
  std::string text;
};
redisReplyObjectFunctions answer_functions() {
  redisReplyObjectFunctions make = {};
  make.createString = [](const redisReadTask* task, char* text, std::size_t size) -> void* {
    return new Answer{task->type, std::string(text, size)};
  };
  make.createInteger = [](const redisReadTask* task, long long value) -> void* {
    return new Answer{task->type, std::to_string(value)};
  };
  make.createNil = [](const redisReadTask*) -> void* { return new Answer{REDIS_REPLY_NIL, {}}; };
  make.createArray = [](auto...) -> void* { return nullptr; };
  make.freeObject = [](void* answer) { delete static_cast<Answer*>(answer); };
  return make;
}

}  // namespace

RedisConnection::RedisConnection(Descriptor socket) : socket_(std::move(socket)), reader_(nullptr, redisReaderFree) {
  static redisReplyObjectFunctions make = answer_functions();
  reader_.reset(redisReaderCreateWithFunctions(&make));
}

RedisConnection::~RedisConnection() = default;

Result<std::unique_ptr<RedisConnection>> RedisConnection::open(const std::string& address, Deadline deadline) {
  const std::size_t colon = address.rfind(':');
  if (!address.starts_with('/') && (colon == std::string::npos || colon == 0 || colon + 1 == address.size()))
    return input_error("team.address", "team_cache is neither HOST:PORT nor the absolute path of a socket");
  if (address.starts_with('/')) {
    TRY(Descriptor socket, connect_to_path(address, deadline));
    return std::unique_ptr<RedisConnection>(new RedisConnection(std::move(socket)));
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // IPv6
  TRY(Descriptor socket, connect_to_host(host, address.substr(colon + 1), deadline));
  return std::unique_ptr<RedisConnection>(new RedisConnection(std::move(socket)));
}

Result<std::optional<std::string>> RedisConnection::ask(const std::vector<std::string_view>& command,
                                                        Deadline deadline) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (std::string_view word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* text = nullptr;
  const int size = redisFormatCommandArgv(&text, static_cast<int>(words.size()), words.data(), sizes.data());
  const std::unique_ptr<char, void (*)(char*)> owned(text, redisFreeCommand);
  if (size < 0) return failed("a command is too large");
  for (int sent = 0; sent < size;) {
    const ssize_t n = ::send(socket_.get(), text + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<int>(n);
    } else if (errno == EAGAIN) {
      TRY_DO(wait(socket_.get(), POLLOUT, deadline));
    } else if (errno != EINTR) {
      return failed(std::strerror(errno));
    }
  }
  std::vector<char> buffer(1 << 16);
  for (std::size_t read = 0; read < most_bytes;) {
    void* found = nullptr;
    if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) return failed("not Redis's protocol");
    if (found) {
      const std::unique_ptr<Answer> answer(static_cast<Answer*>(found));
      if (answer->type == REDIS_REPLY_ERROR) return failed(answer->text);
      if (answer->type == REDIS_REPLY_NIL) return std::optional<std::string>();
      return std::optional(std::move(answer->text));
    }
    const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (n > 0) {
      read += static_cast<std::size_t>(n);
      if (redisReaderFeed(reader_.get(), buffer.data(), static_cast<std::size_t>(n)) != REDIS_OK)
        return failed("the memory does not suffice for its answer");
    } else if (n == 0) {
      return failed("it closed the connection");
    } else if (errno == EAGAIN) {
      TRY_DO(wait(socket_.get(), POLLIN, deadline));
    } else if (errno != EINTR) {
      return failed(std::strerror(errno));
    }
  }
  return failed("its answer is too large");
}

}  // namespace partita
