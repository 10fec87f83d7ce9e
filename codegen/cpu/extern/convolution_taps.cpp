// Convolutions, transposed ones and gradients by the input, tap by tap: for each row of the result a tap is one product
// of input pixels and the tap's packed weights, summed in the result by our product kernel.
#include "codegen/cpu/extern/convolution_taps.h"

#include <algorithm>

#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/row_blocks.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// Places of the result, from `out` on, and of the input, from `in` on, that a tap joins: `count` of each, equally far
/// apart.
struct Line {
  std::int64_t out = 0, in = 0, count = 0;
};

/// Pixels [first, end) of a row of the result.
struct Stretch {
  std::int64_t row = 0, first = 0, end = 0;
};

/// One of the two dimensions. A transposed convolution's taps reach only every stride-th place of the result; such
/// places are a phase. Otherwise all places are one phase.
struct Dimension {
  std::int64_t in_size = 0, out_size = 0, taps = 0, stride = 1, dilation = 1, padding = 0;
  bool transposed = false;

  std::int64_t in_step() const { return transposed ? 1 : stride; }
  std::int64_t out_step() const { return transposed ? stride : 1; }
  std::int64_t phases() const { return std::min(out_step(), out_size); }
  std::int64_t places(std::int64_t phase) const { return (out_size - phase + out_step() - 1) / out_step(); }
  /// Those of a phase.
  Line all(std::int64_t phase) const { return {phase, 0, places(phase)}; }
  /// What of the line lies within the stretch.
  Line within(const Stretch& s, Line line) const {
    const auto places_before = [&](std::int64_t end) {
      return std::clamp<std::int64_t>((end - line.out + out_step() - 1) / out_step(), 0, line.count);
    };
    const std::int64_t skipped = places_before(s.first), end = places_before(s.end);
    return {line.out + skipped * out_step(), line.in + skipped * in_step(), std::max<std::int64_t>(0, end - skipped)};
  }

  /// What a tap joins of a phase.
  Line line(std::int64_t phase, std::int64_t tap) const {
    std::int64_t shift = tap * dilation - padding;
    if (transposed) {
      shift = phase - shift;
      if (shift % stride != 0) return {};
      shift /= stride;
      const std::int64_t first = std::max<std::int64_t>(0, -shift), last = std::min(places(phase), in_size - shift);
      return {phase + first * stride, first + shift, std::max<std::int64_t>(0, last - first)};
    }
    const std::int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const std::int64_t last = shift < in_size ? std::min(out_size, (in_size - 1 - shift) / stride + 1) : 0;
    return {first, first * stride + shift, std::max<std::int64_t>(0, last - first)};
  }
};

/// What one tap of the window gives pixels of a row of the result.
struct Part {
  std::int64_t tap = 0, row = 0;  ///< of the window, and of the input
  Line pixels;
};

struct TapsProblem {
  Dimension y, x;
  std::int64_t channels = 0, results = 0;
  ConcreteView input, weight, out;
  std::optional<ConcreteView> bias;
  std::size_t channel_of_weight = 1, result_of_weight = 0;  ///< its dimensions

  std::int64_t taps() const { return y.taps * x.taps; }

  /// Images of one row are shared by their pixels.
  bool is_one_row() const { return y.out_size == 1; }
  /// f(each of the block's stretches)
  void each_stretch(const RowBlock& b, auto f) const {
    if (is_one_row()) return f(Stretch{0, b.first, b.first + b.rows});
    for (std::int64_t row = b.first; row < b.first + b.rows; ++row) f(Stretch{row, 0, x.out_size});
  }

  /// Makes `parts` what all taps give the pixels of one phase of a stretch.
  void parts_of(const Stretch& stretch, std::int64_t phase, std::vector<Part>& parts) const {
    parts.clear();
    for (std::int64_t ky = 0; ky < y.taps; ++ky) {
      const Line rows = y.line(stretch.row % y.out_step(), ky);
      const std::int64_t at = (stretch.row - rows.out) / y.out_step();
      if (stretch.row < rows.out || at >= rows.count) continue;
      for (std::int64_t kx = 0; kx < x.taps; ++kx)
        if (const Line pixels = x.within(stretch, x.line(phase, kx)); pixels.count > 0)
          parts.push_back({ky * x.taps + kx, rows.in + at * y.in_step(), pixels});
    }
  }

  /// Has each phase of each stretch a part that reaches all its pixels?
  bool is_covered(const std::vector<RowBlock>& blocks) const {
    std::vector<Part> parts;
    bool covered = true;
    for (const RowBlock& b : blocks)
      each_stretch(b, [&](const Stretch& stretch) {
        for (std::int64_t phase = 0; phase < x.phases(); ++phase) {
          const std::int64_t all = x.within(stretch, x.all(phase)).count;
          parts_of(stretch, phase, parts);
          covered &= all == 0 || std::ranges::any_of(parts, [&](const Part& p) { return p.pixels.count == all; });
        }
      });
    return covered;
  }
};

class TapsStep final : public RowBlocksStep {
 public:
  /// `result`: as the blocks' rows are its.
  TapsStep(const ProductKernel& kernel, const ExternContext& context, TapsProblem problem, const ConcreteView& result,
           std::vector<RowBlock> blocks)
      : RowBlocksStep(context.threads, result, std::move(blocks)),
        kernel_(kernel),
        problem_(std::move(problem)),
        weights_(weights_of(context, problem_.weight.buffer)) {
    // The weights of some columns, which stay in the second cache for a block of rows.
    constexpr std::int64_t second_cache = 1 << 17;  // elements in a good part of it
    const std::int64_t width = kernel.panel_columns, panels = panels_of(kernel, problem_.results);
    const std::int64_t together =
        std::clamp(second_cache / (problem_.taps() * problem_.channels * width), std::int64_t{1}, panels);
    const std::int64_t groups = (panels + together - 1) / together;
    for (std::int64_t i = 0; i < groups; ++i) {
      const std::int64_t first = panels * i / groups * width, end = panels * (i + 1) / groups * width;
      groups_.push_back({first, std::min(end, problem_.results) - first, elements_});
      elements_ += problem_.taps() * kernel.packed_elements(problem_.channels, groups_.back().columns);
    }
  }

 protected:
  void begin(std::byte* const* buffers) override {
    pack(problem_.weight.at(buffers));
    input_ = reinterpret_cast<const float*>(problem_.input.at(buffers));
    if (problem_.bias) bias_ = reinterpret_cast<const float*>(problem_.bias->at(buffers));
  }

  void compute(const RowBlock& b, std::byte*) override {
    std::vector<Part> parts;
    for (const Group& group : groups_)
      problem_.each_stretch(b, [&](const Stretch& stretch) {
        for (std::int64_t phase = 0; phase < problem_.x.phases(); ++phase) {
          const Line all = problem_.x.within(stretch, problem_.x.all(phase));
          problem_.parts_of(stretch, phase, parts);
          if (all.count > 0) sum(b, group, stretch.row, all, parts);
        }
      });
  }

 private:
  struct Group {
    std::int64_t first = 0, columns = 0;
    std::int64_t packed = 0;  ///< elements before those of its first tap
  };

  /// The parts' sum for pixels `all` of a row. One that reaches all of them ends it, with the work that follows, and
  /// another one begins it. Where there is none to begin, biases or zeros do.
  void sum(const RowBlock& b, const Group& group, std::int64_t row, const Line& all, std::vector<Part>& parts) {
    const auto whole = [&](const Part& part) { return part.pixels.count == all.count; };
    const auto last = std::ranges::find_if(parts.rbegin(), parts.rend(), whole);
    if (last != parts.rend()) std::iter_swap(last, parts.rbegin());
    const auto first = std::ranges::find_if(parts, whole);
    const bool begins = !parts.empty() && first != parts.end() && (parts.size() == 1 || first + 1 != parts.end());
    if (begins) std::iter_swap(first, parts.begin());

    const ConcreteView &in = problem_.input, &out = problem_.out;
    const std::int64_t pixel = out.strides[3] * problem_.x.out_step();
    const std::int64_t panels = panels_of(kernel_, group.columns);
    const std::int64_t of_tap = kernel_.packed_elements(problem_.channels, group.columns);
    const std::int64_t of_row = row * out.strides[2] + group.first;
    const float* const bias = bias_ ? bias_ + group.first : nullptr;
    if (!begins)
      for (std::int64_t i = 0; i < all.count; ++i) {
        float* const to = image(b) + of_row + all.out * out.strides[3] + i * pixel;
        for (std::int64_t c = 0; c < group.columns; ++c) to[c] = bias ? bias[c] : 0;
      }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [tap, in_row, pixels] = parts[i];
      const std::int64_t at = of_row + pixels.out * out.strides[3];
      ProductProblem p{group.columns, problem_.channels};
      p.left = input_ + b.image * in.strides[0] + in_row * in.strides[2] + pixels.in * in.strides[3];
      p.left_row = problem_.x.in_step() * in.strides[3];
      p.packed = packed_ + group.packed + tap * of_tap;
      p.out = image(b) + at;
      p.out_row = pixel;
      const bool from_out = i > 0 || !begins;
      p.added = from_out ? p.out : bias;
      p.added_row = from_out ? pixel : 0;
      if (i + 1 == parts.size()) {
        p.work = register_work(b);
        if (p.work.added) p.work.added += at;
      }
      kernel_.run(p, 0, pixels.count, 0, panels);
    }
  }

  void pack(std::byte* at) {
    if (weights_ && packed_from_ == at) return;
    packed_from_ = at;
    const auto fill = [&](float* to) {
      for (const Group& group : groups_)
        parallel_for(threads(), problem_.channels, 4, 1, [&](std::int64_t first, std::int64_t last, int) {
          pack(reinterpret_cast<const float*>(at), group, first, last, to + group.packed);
        });
    };
    if (weights_) {
      const memory plain(*describe(problem_.weight), cpu_engine(), at);
      // As many dimensions as no other kernel's packed weights have: kept ones are found by their descriptor.
      memory::dims shape(problem_.x.transposed ? 3 : 2, 1), strides(shape.size(), elements_);
      shape.back() = elements_;
      strides.back() = 1;
      const memory::desc wanted(shape, memory::data_type::f32, strides);
      shared_ = weights_->packed(plain, wanted, [&](memory& m) { fill(static_cast<float*>(m.get_data_handle())); });
      packed_ = static_cast<const float*>(shared_->get_data_handle());
      return;
    }
    // Kept for other convolutions on this thread: fresh memory costs more than to fill it.
    static thread_local std::vector<float> own;
    own.resize(static_cast<std::size_t>(elements_));
    fill(own.data());
    packed_ = own.data();
  }
  /// Channels [first, last) of all taps.
  void pack(const float* weight, const Group& group, std::int64_t first, std::int64_t last, float* to) const {
    const Sizes& s = problem_.weight.strides;
    const std::int64_t of_channel = s[problem_.channel_of_weight], of_result = s[problem_.result_of_weight];
    const std::int64_t of_tap = kernel_.packed_elements(problem_.channels, group.columns);
    const std::int64_t width = kernel_.panel_columns, taps = problem_.taps(), taps_x = problem_.x.taps;
    const bool adjacent_taps = s[3] == 1 && s[2] == taps_x;
    for (std::int64_t panel = 0; panel < group.columns; panel += width) {
      const std::int64_t filled = std::min(width, group.columns - panel);
      const std::int64_t gap = kernel_.packed_elements(1, filled) - filled;
      for (std::int64_t c = first; c < last; ++c) {
        const float* from = weight + c * of_channel + (group.first + panel) * of_result;
        float* const row = to + kernel_.place(problem_.channels, group.columns, c, panel);
        if (adjacent_taps) kernel_.transpose(from, of_result, taps, filled, row, of_tap);
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const float* of = from + tap / taps_x * s[2] + tap % taps_x * s[3];
          float* const end = row + tap * of_tap + filled;
          for (std::int64_t r = 0; !adjacent_taps && r < filled; ++r) end[r - filled] = of[r * of_result];
          std::fill_n(end, gap, 0.0F);
        }
      }
    }
  }

  const ProductKernel& kernel_;
  TapsProblem problem_;
  std::vector<Group> groups_;
  std::int64_t elements_ = 0;               ///< of all packed weights
  std::shared_ptr<PackedWeights> weights_;  ///< null: they change
  std::shared_ptr<memory> shared_;
  const float* packed_ = nullptr;
  const void* packed_from_ = nullptr;
  const float *input_ = nullptr, *bias_ = nullptr;
};

constexpr std::int64_t least_channels = 8;

/// Is it the product of every second pixel, or fewer, with fixed weights? oneDNN is slower at these even where its
/// other products are as fast as ours, unless rows are so short that all weights are read again for a few pixels.
bool steps_over_pixels(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& weight,
                       const ConcreteView& out) {
  constexpr std::int64_t least_width = 12;
  return !g.transposed && weight.sizes[2] == 1 && weight.sizes[3] == 1 && g.strides[1] > 1 &&
         out.sizes[3] >= least_width && context.fixed(weight.buffer);
}

bool fits_taps(const ConvolutionArguments& g, const ConcreteView& input, const ConcreteView& weight,
               const ConcreteView& out) {
  for (const ConcreteView* v : {&input, &weight, &out})
    if (v->dtype != DType::Float32 || v->sizes.size() != 4 || std::ranges::count(v->sizes, 0) != 0) return false;
  const auto negative = [](std::int64_t n) { return n < 0; };
  return product_kernel() && g.groups == 1 && input.strides[1] == 1 && out.strides[1] == 1 &&
         input.sizes[1] >= least_channels && out.sizes[1] >= least_channels &&
         std::ranges::none_of(g.padding, negative);
}

/// A convolution of `input` to `out`, or a transposed one.
TapsProblem problem_of(const ConvolutionArguments& g, bool transposed, const ConcreteView& input,
                       const ConcreteView& weight, const ConcreteView& out) {
  const auto dimension = [&](std::size_t i) {
    return Dimension{input.sizes[2 + i], out.sizes[2 + i], weight.sizes[2 + i], g.strides[i],
                     g.dilation[i] + 1,  g.padding[i],     transposed};
  };
  TapsProblem p{dimension(0), dimension(1), input.sizes[1], out.sizes[1], input, weight, out, std::nullopt};
  if (transposed) std::swap(p.channel_of_weight, p.result_of_weight);
  return p;
}

Prepared prepare(const ExternContext& context, TapsProblem problem) {
  const bool fixed = context.fixed(problem.weight.buffer);
  if (fixed && !describe(problem.weight)) return {};
  // Of short rows each tile has few, and oneDNN, unless it has gaps to step over, is as fast without packing.
  constexpr std::int64_t least_width = 16;
  if (!fixed && problem.x.places(0) < least_width && problem.x.dilation == 1) return {};
  constexpr std::int64_t second_cache = 1 << 18;  // a good part of a core's
  const Sizes &in = problem.input.sizes, &out = problem.out.sizes;
  const std::int64_t bytes = (in[1] * in[2] * in[3] + out[1] * out[2] * out[3]) * 4;
  ConcreteView result = problem.out;
  std::int64_t unit = 1;
  if (problem.is_one_row()) {
    result.sizes.erase(result.sizes.begin() + 2);
    result.strides.erase(result.strides.begin() + 2);
    unit = least_width;
  }
  auto blocks = share_rows(out[0], result.sizes[2], unit, (bytes - 1) / second_cache + 1, context.threads);
  if (context.work && context.work->simple && !problem.is_covered(blocks)) return {};
  const ProductKernel& kernel = *product_kernel();
  auto step = std::make_unique<TapsStep>(kernel, context, std::move(problem), result, std::move(blocks));
  Prepared prepared{nullptr, std::string("Partita ") + kernel.name + " taps"};
  prepared.work = step->take_work(context.work, prepared.does_work);
  prepared.step = std::move(step);
  return prepared;
}

}  // namespace

Prepared prepare_taps(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                      const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out) {
  if (input.sizes.size() == 3)
    return prepare_taps(context, with_height(g), with_height(input), with_height(weight), bias, with_height(out));
  if (!own_products_are_faster() && !steps_over_pixels(context, g, weight, out) && !has_long_sums(weight)) return {};
  if (!fits_taps(g, input, weight, out) || (bias && (bias->dtype != DType::Float32 || bias->strides[0] != 1)))
    return {};
  TapsProblem problem = problem_of(g, g.transposed, input, weight, out);
  problem.bias = bias;
  return prepare(context, std::move(problem));
}

Prepared prepare_taps_to_input(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& grad,
                               const ConcreteView& weight, const ConcreteView& result) {
  if (grad.sizes.size() == 3)
    return prepare_taps_to_input(context, with_height(g), with_height(grad), with_height(weight), with_height(result));
  if (!fits_taps(g, grad, weight, result)) return {};
  const std::int64_t products = grad.sizes[1] * weight.sizes[2] * weight.sizes[3];
  if (!own_products_are_faster() && !is_long_sum(products)) return {};
  ExternContext alone = context;  // the work that follows is not for one of several steps
  alone.work = nullptr;
  return prepare(alone, problem_of(g, !g.transposed, grad, weight, result));
}

}  // namespace partita::codegen
