#include "core/process/message.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include "core/base/descriptor.h"

namespace partita {
namespace {

struct Header {
  std::size_t bytes = 0;
};

union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr aligned;
};

}  // namespace

bool send_packet(int socket, std::string_view bytes, int fd) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

bool send_message(int socket, std::string_view text, int fd) {
  const Header header{text.size()};
  return send_packet(socket, {reinterpret_cast<const char*>(&header), sizeof header}, fd) &&
         write_all(socket, text.data(), text.size());
}

std::optional<Message> receive_message(int socket, const std::function<bool()>& wait) {
  Header header;
  iovec part{&header, sizeof header};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  if (!wait()) return std::nullopt;
  ssize_t n = 0;
  do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof header)) return std::nullopt;
  Message out;
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&message); rights && rights->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    out.fd = Descriptor(fd);
  }
  out.text.resize(header.bytes);
  for (std::size_t at = 0; at < out.text.size();) {
    if (!wait()) return std::nullopt;
    n = ::recv(socket, out.text.data() + at, out.text.size() - at, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    at += static_cast<std::size_t>(n);
  }
  return out;
}

}  // namespace partita
