#pragma once
#include <dnnl.hpp>

#include "codegen/cpu/extern/extern.h"

namespace partita::codegen {

dnnl::engine& cpu_engine();

/// The element type, or undef for those that oneDNN does not compute with.
dnnl::memory::data_type onednn_type(DType dtype);

/// The view as a descriptor; nullopt for strides that oneDNN cannot have (a repeated dimension). Strides of dimensions
/// of size 1 are made what a dense tensor has.
std::optional<dnnl::memory::desc> describe(const ConcreteView& view);

/// The view's sizes without gaps, row-major: for arguments whose strides oneDNN takes and then reads past (biases).
dnnl::memory::desc dense(const ConcreteView& view);

/// One argument of a primitive: the tensor as the plan has it, and as the primitive wants it. Reordered before (an
/// input) or after (a result) when the two differ; a fixed input only when its address changes.
class Operand {
 public:
  Operand(const ConcreteView& view, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, bool fixed);
  const dnnl::memory& memory() const { return wanted_; }
  void load(dnnl::stream& stream, std::byte* const* buffers);  ///< before the primitive
  void attach(std::byte* const* buffers);                      ///< a result: where it goes
  void store(dnnl::stream& stream);                            ///< after the primitive

 private:
  ConcreteView view_;
  dnnl::memory plain_, wanted_;
  std::optional<dnnl::reorder> reorder_;
  bool fixed_ = false;
  const void* packed_from_ = nullptr;
};

/// oneDNN's threads are OpenMP's: as many as the calling thread is allowed. Restores the number when it goes.
class OnednnThreads {
 public:
  explicit OnednnThreads(int threads);
  ~OnednnThreads();
  OnednnThreads(const OnednnThreads&) = delete;
  OnednnThreads& operator=(const OnednnThreads&) = delete;

 private:
  int before_;
};

}  // namespace partita::codegen
