#include "core/tensor/device.h"

#include <charconv>

namespace partita {

std::string Device::str() const {
  static constexpr std::string_view names[] = {"cpu", "cuda", "meta", "xpu"};
  std::string out(names[static_cast<int>(type)]);
  return index < 0 ? out : out + ":" + std::to_string(index);
}

std::optional<Device> Device::parse(std::string_view text) {
  Device d;
  std::size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  if (name == "cpu")
    d.type = DeviceType::Cpu;
  else if (name == "cuda")
    d.type = DeviceType::Cuda;
  else if (name == "meta")
    d.type = DeviceType::Meta;
  else if (name == "xpu" || name == "mps" || name == "hpu")
    d.type = DeviceType::Other;
  else
    return std::nullopt;
  if (colon != std::string_view::npos) {
    auto [end, bad] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), d.index);
    if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  return d;
}

std::string_view torch_name(Layout l) {
  static constexpr std::string_view names[] = {"strided", "sparse_coo", "sparse_csr", "_mkldnn"};
  return names[static_cast<int>(l)];
}

std::string_view torch_name(MemoryFormat f) {
  static constexpr std::string_view names[] = {"contiguous_format", "preserve_format", "channels_last",
                                               "channels_last_3d"};
  return names[static_cast<int>(f)];
}

}  // namespace partita
