#include "codegen/cpu/extern/onednn.h"

#include "core/base/mapped_file.h"
#include "core/base/openmp.h"

namespace partita::codegen {

using dnnl::memory;

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type onednn_type(DType dtype) {
  if (dtype == DType::Float32) return memory::data_type::f32;
  if (dtype == DType::BFloat16) return memory::data_type::bf16;
  return memory::data_type::undef;
}

std::optional<memory::desc> describe(const ConcreteView& view) {
  return describe(view, onednn_type(view.dtype));
}

std::optional<memory::desc> describe(const ConcreteView& view, memory::data_type type) {
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

std::shared_ptr<PackedWeights> weights_of(const ExternContext& context, int buffer) {
  if (!context.fixed(buffer)) return nullptr;
  return context.packed ? std::static_pointer_cast<PackedWeights>(context.packed) : std::make_shared<PackedWeights>();
}

std::shared_ptr<memory> PackedWeights::packed(const memory& plain, const memory::desc& wanted,
                                              const std::function<void(memory&)>& pack) {
  const std::lock_guard lock(mutex_);
  std::vector<Entry>& here = entries_[plain.get_data_handle()];
  std::erase_if(here, [](const Entry& e) { return e.memory.expired(); });
  for (const Entry& e : here)
    if (e.plain == plain.get_desc() && e.wanted == wanted)
      if (auto known = e.memory.lock()) return known;
  auto made = std::make_shared<memory>(wanted, cpu_engine());
  pack(*made);
  leave_in_file(plain.get_data_handle(), plain.get_desc().get_size());
  here.push_back({plain.get_desc(), wanted, made});
  return made;
}

PrimitiveOperand::PrimitiveOperand(const ConcreteView& view, const memory::desc& plain, const memory::desc& wanted,
                                   std::shared_ptr<PackedWeights> weights)
    : view_(view),
      plain_(plain, cpu_engine(), DNNL_MEMORY_NONE),
      wanted_layout_(wanted),
      same_(plain == wanted),
      weights_(std::move(weights)) {
  if (!same_ && !weights_) wanted_ = dnnl::memory(wanted, cpu_engine());
}

bool PrimitiveOperand::load(dnnl::stream& stream, std::byte* const* buffers) {
  std::byte* at = view_.at(buffers);
  plain_.set_data_handle(at);
  if (same_ || (weights_ && packed_from_ == at)) return false;
  if (weights_) {
    packed_ = weights_->packed(plain_, wanted_layout_,
                               [&](dnnl::memory& made) { dnnl::reorder(plain_, made).execute(stream, plain_, made); });
    wanted_ = *packed_;
    packed_from_ = at;
    return true;
  }
  if (!kept_) wanted_ = dnnl::memory(wanted_layout_, cpu_engine());
  if (!reorder_) reorder_.emplace(plain_, wanted_);
  reorder_->execute(stream, plain_, wanted_);
  return !kept_;
}

bool PrimitiveOperand::release() {
  if (!kept_) wanted_ = {};
  return !kept_;
}

void PrimitiveOperand::attach(std::byte* const* buffers) {
  plain_.set_data_handle(view_.at(buffers));
}

void PrimitiveOperand::store(dnnl::stream& stream) {
  if (same_) return;
  if (!reorder_) reorder_.emplace(wanted_, plain_);
  reorder_->execute(stream, wanted_, plain_);
}

Status OnednnStep::run(std::byte* const* buffers) {
  OnednnThreads limit(threads_);
  for (Call& call : calls) {
    bool moved = call.map.empty();
    for (Argument& a : call.arguments) {
      if (a.result)
        a.operand.attach(buffers);
      else
        moved = a.operand.load(stream_, buffers) || moved;
    }
    if (moved)
      for (Argument& a : call.arguments) call.map.insert_or_assign(a.role, a.operand.memory());
    call.primitive.execute(stream_, call.map);
    for (Argument& a : call.arguments) {
      if (a.result) a.operand.store(stream_);
      if (a.operand.release()) call.map.erase(a.role);
    }
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
