#include "core/load/user_kernels.h"

#include <algorithm>

namespace partita {

std::vector<UserKernel> find_user_kernels(std::string_view text) {
  constexpr std::string_view table = "kernel_side_table.", resets = "reset_table(", adds = "add_kernel(";
  std::vector<UserKernel> out;
  bool within = false;
  std::size_t begin = 0, added = 0;
  for (std::size_t at = text.find(table); at != text.npos; at = text.find(table, at + table.size())) {
    const std::string_view call = text.substr(at + table.size());
    const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is the first
    const std::size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (call.starts_with(adds) && within) {
      const std::size_t close = call.find_first_of(")\n");
      UserKernel kernel{.index = added++, .name = std::string(call.substr(adds.size(), close - adds.size()))};
      kernel.begin = std::min(text.find_first_not_of("\r\n", begin), line);
      kernel.end = line;
      kernel.line = 1 + static_cast<int>(std::ranges::count(text.substr(0, kernel.begin), '\n'));
      if (close != call.npos && text.substr(kernel.begin, kernel.end - kernel.begin).find("def " + kernel.name + "(") !=
                                    std::string_view::npos)
        out.push_back(std::move(kernel));
    }
    within |= call.starts_with(resets) || call.starts_with(adds);
    begin = next;
  }
  return out;
}

}  // namespace partita
