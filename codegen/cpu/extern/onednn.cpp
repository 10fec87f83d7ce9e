#include "codegen/cpu/extern/onednn.h"

#include <omp.h>

#include "core/base/check.h"

namespace partita::codegen {

using dnnl::memory;

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type onednn_type(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return memory::data_type::f32;
    case DType::BFloat16:
      return memory::data_type::bf16;
    default:
      return memory::data_type::undef;
  }
}

std::optional<memory::desc> describe(const ConcreteView& view) {
  auto type = onednn_type(view.dtype);
  if (type == memory::data_type::undef || view.sizes.empty()) return std::nullopt;
  memory::dims strides = view.strides;
  std::int64_t dense = 1;
  for (std::size_t d = strides.size(); d-- > 0;) {
    if (view.sizes[d] == 0) return std::nullopt;
    if (view.sizes[d] == 1) strides[d] = dense;
    if (strides[d] <= 0) return std::nullopt;
    dense = std::max(dense, strides[d] * view.sizes[d]);
  }
  try {
    return memory::desc(view.sizes, type, strides);
  } catch (const dnnl::error&) {
    return std::nullopt;  // elements overlap
  }
}

memory::desc dense(const ConcreteView& view) {
  return memory::desc(view.sizes, onednn_type(view.dtype), memory::dims(row_major_strides(view.sizes)));
}

PrimitiveOperand::PrimitiveOperand(const ConcreteView& view, const memory::desc& plain, const memory::desc& wanted,
                                   bool fixed)
    : view_(view), plain_(plain, cpu_engine(), DNNL_MEMORY_NONE), fixed_(fixed) {
  if (plain == wanted) {
    wanted_ = plain_;
    return;
  }
  wanted_ = dnnl::memory(wanted, cpu_engine());
}

void PrimitiveOperand::load(dnnl::stream& stream, std::byte* const* buffers) {
  std::byte* at = view_.at(buffers);
  plain_.set_data_handle(at);
  if (plain_.get() == wanted_.get()) return;
  if (fixed_ && packed_from_ == at) return;
  if (!reorder_) reorder_.emplace(plain_, wanted_);
  reorder_->execute(stream, plain_, wanted_);
  packed_from_ = at;
}

void PrimitiveOperand::attach(std::byte* const* buffers) {
  plain_.set_data_handle(view_.at(buffers));
}

void PrimitiveOperand::store(dnnl::stream& stream) {
  if (plain_.get() == wanted_.get()) return;
  if (!reorder_) reorder_.emplace(wanted_, plain_);
  reorder_->execute(stream, wanted_, plain_);
}

Status OnednnStep::run(std::byte* const* buffers) {
  OnednnThreads limit(threads_);
  for (Call& call : calls) {
    for (Argument& a : call.arguments) a.result ? a.operand.attach(buffers) : a.operand.load(stream_, buffers);
    if (call.map.empty())
      for (Argument& a : call.arguments) call.map.insert({a.role, a.operand.memory()});
    call.primitive.execute(stream_, call.map);
    for (Argument& a : call.arguments)
      if (a.result) a.operand.store(stream_);
  }
  return {};
}

Prepared refused(std::string& why_not, std::string why) {
  why_not = std::move(why);
  return {};
}

OnednnThreads::OnednnThreads(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}
OnednnThreads::~OnednnThreads() {
  omp_set_num_threads(before_);
}

}  // namespace partita::codegen
