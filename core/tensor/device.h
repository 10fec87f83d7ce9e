#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace partita {

enum class DeviceType : std::uint8_t { Cpu, Cuda, Meta, Other };

struct Device {
  DeviceType type = DeviceType::Cpu;
  int index = -1;  ///< -1: no index given

  bool operator==(const Device&) const = default;
  std::string str() const;                                    ///< "cpu", "cuda:0"
  static std::optional<Device> parse(std::string_view text);  ///< nullopt: not so written
};

enum class Layout : std::uint8_t { Strided, SparseCoo, SparseCsr, Mkldnn };
enum class MemoryFormat : std::uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
std::string_view torch_name(Layout l);        ///< "strided"
std::string_view torch_name(MemoryFormat f);  ///< "contiguous_format"

}  // namespace partita
