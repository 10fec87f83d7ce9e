#pragma once
// What the steps of a plan do, for people: the list behind `partita kernels`, the kernel view and the report.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/plan.h"

namespace partita::schedule {

/// A row of the list.
struct KernelRow {
  enum class Kind : std::uint8_t { Kernel, Library, Evaluation };
  /// A step that it was not joined with, and why.
  struct Neighbour {
    std::size_t step = 0;
    bool reads = false;  ///< this step reads what the other makes; else the other way round
    std::string why;
  };

  Kind kind = Kind::Kernel;
  std::string name;                  ///< "k0_mul_add", or the call's operator: "mm"
  std::vector<std::string> origins;  ///< graph nodes that it computes, see step_origins()
  double read = 0, written = 0;      ///< bytes of memory, each element once; gathers count each element they read
  double operations = 0;             ///< arithmetic of scalars; 0: not known, for evaluations
  bool half = false;                 ///< a library call on 16-bit floats
  std::vector<int> reads, writes;    ///< plan buffers
  std::vector<Neighbour> apart;
  std::optional<double> seconds;  ///< the median of several runs; unset: it was not run
  std::string library, why_not;   ///< see StepMeasure; set with `seconds`
};
std::string_view name(KernelRow::Kind kind);  ///< "kernel"

/// A piece of memory, and the steps during which it is needed.
struct BufferRow {
  int buffer = 0;
  PlanBuffer::Kind kind = PlanBuffer::Kind::Temporary;
  std::string node;  ///< the graph node whose value it holds first; a constant's attribute
  double bytes = 0;
  double offset = 0;                ///< of temporaries: into the arena
  std::size_t first = 0, last = 0;  ///< steps that use it, both included
  bool used = false;
};
std::string_view name(PlanBuffer::Kind kind);  ///< "temporary"

/// What a machine can do at best, as measured.
struct MachineLimit {
  double bytes_per_second = 0;            ///< copied, from memory to memory
  double cached_bytes_per_second = 0;     ///< copied within the cache
  double operations_per_second = 0;       ///< in products of matrices, in single precision
  double half_operations_per_second = 0;  ///< of 16-bit floats; 0: not measured

  double operations(const KernelRow& row) const {
    return row.half && half_operations_per_second > 0 ? half_operations_per_second : operations_per_second;
  }
};

struct KernelReport {
  std::string graph;                  ///< "forward"
  std::vector<KernelRow> rows;        ///< by step
  std::vector<BufferRow> buffers;     ///< by plan buffer
  std::vector<double> live;           ///< by step: bytes of temporaries that are needed then
  double arena_bytes = 0;             ///< that all temporaries take together
  double cache_bytes = 0;             ///< of the target's last-level cache; 0: not known
  std::optional<MachineLimit> limit;  ///< set when rows have times

  /// The step with the most live bytes; nullopt without steps.
  std::optional<std::size_t> peak() const;
  /// The temporaries that are needed at a step, largest first.
  std::vector<const BufferRow*> live_at(std::size_t step) const;
  /// The least time that a step's bytes and arithmetic take at the limit, by the time it took. Above 1, it read from a
  /// nearer cache than the limit's copies, or its product has a better size. Nullopt when it was not run.
  std::optional<double> share(const KernelRow& row) const;
  bool in_cache(const KernelRow& row) const { return row.read + row.written <= cache_bytes; }
};

/// The list for a plan of concrete sizes, without what only a run tells.
KernelReport kernel_report(const Plan& plan, std::string graph);

}  // namespace partita::schedule
