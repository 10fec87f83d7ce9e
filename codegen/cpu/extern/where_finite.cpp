#include "codegen/cpu/extern/where_finite.h"

#include <atomic>
#include <bit>
#include <cstdint>

#include "core/base/threads.h"

namespace partita::codegen {
namespace {

class WhereFinite final : public ExternStep {
 public:
  WhereFinite(std::unique_ptr<ExternStep> fast, const ConcreteView& result, std::int64_t elements, int threads,
              MakeStep direct)
      : fast_(std::move(fast)), result_(result), elements_(elements), threads_(threads), make_(std::move(direct)) {}

  Status run(std::byte* const* buffers) override {
    TRY_DO(fast_->run(buffers));
    if (finite(reinterpret_cast<const float*>(result_.at(buffers)))) return {};
    if (!direct_) direct_ = make_();
    return direct_->run(buffers);
  }

 private:
  bool finite(const float* values) const {
    std::atomic<bool> all = true;
    parallel_for(threads_, elements_, 1 << 16, 1, [&](std::int64_t begin, std::int64_t end, int) {
      constexpr std::uint32_t exponent = 0x7f800000;
      std::uint32_t bad = 0;
      for (std::int64_t i = begin; i < end; ++i)
        bad |= (std::bit_cast<std::uint32_t>(values[i]) & exponent) == exponent ? 1U : 0U;
      if (bad) all = false;
    });
    return all;
  }

  std::unique_ptr<ExternStep> fast_, direct_;
  ConcreteView result_;
  std::int64_t elements_;
  int threads_;
  MakeStep make_;
};

}  // namespace

std::unique_ptr<ExternStep> where_finite(std::unique_ptr<ExternStep> fast, const ConcreteView& result, int threads,
                                         MakeStep direct) {
  std::int64_t elements = 1, span = 1;
  for (std::size_t d = 0; d < result.sizes.size(); ++d) {
    elements *= result.sizes[d];
    span += (result.sizes[d] - 1) * result.strides[d];
  }
  if (elements != span) return nullptr;
  return std::make_unique<WhereFinite>(std::move(fast), result, elements, threads, std::move(direct));
}

}  // namespace partita::codegen
