#pragma once
// The events of a chrome trace that tell what compiled code did, in a few bytes each.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"

namespace partita {

/// Texts by number, each once. Number 0 is the empty text.
class TextTable {
 public:
  TextTable() { number(""); }
  /// Of a text that is new when the table is full: 0.
  std::uint32_t number(std::string_view text);
  const std::string& text(std::uint32_t number) const { return *texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<const std::string*> texts_;  ///< keys of `numbers_`
  std::size_t bytes_ = 0;
};

struct TraceEvent {
  enum class Kind : std::uint8_t {
    Op,          ///< of the CPU: cat cpu_op
    Annotation,  ///< of the CPU: cat user_annotation
    Launch,      ///< of the driver, that starts work on a device: cat cuda_runtime, cuda_driver
    Device,      ///< work on a device: cat kernel, gpu_memcpy, gpu_memset
    FlowStart,   ///< an arrow of ac2g from a launch
    FlowEnd,     ///< to the device's work
  };
  std::int64_t begin = 0, length = 0;  ///< nanoseconds
  std::int64_t correlation = 0;        ///< of launches, devices and flows; 0: none
  std::int64_t external = 0;           ///< "External id": the operator around it; 0: none
  std::uint32_t name = 0, dims = 0;    ///< in the table; dims: "Input Dims" as JSON
  std::uint32_t thread = 0;            ///< a thread of the CPU or a stream of a device
  Kind kind = Kind::Op;

  std::int64_t end() const { return begin + length; }
};

struct TraceEvents {
  TextTable texts;
  std::vector<TraceEvent> events;  ///< by thread and beginning, what is around others before them
  std::string device;              ///< "NVIDIA H200"; empty: the trace names none
  std::vector<Diagnostic> notes;   ///< what could not be read; each a warning
};

/// Reads a trace in one pass. Errors: those of EventStream::open; profile.empty without any event of use.
Result<TraceEvents> read_trace_events(const std::string& path, const Progress* progress);

}  // namespace partita
