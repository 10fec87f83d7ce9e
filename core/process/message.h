#pragma once
// Messages between a program and its worker: a text and at most one file descriptor.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/descriptor.h"

namespace partita {

struct Message {
  std::string text;
  Descriptor fd;
};

/// Sends bytes as one packet, with a descriptor unless it is -1. False when the other side is gone.
bool send_packet(int socket, std::string_view bytes, int fd);
/// False when the other side is gone.
bool send_message(int socket, std::string_view text, int fd = -1);
/// nullopt when the other side is gone or `wait`, which is called before each read and may block, returns false.
std::optional<Message> receive_message(int socket, const std::function<bool()>& wait);

}  // namespace partita
