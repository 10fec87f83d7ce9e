// A convolution by blocks of rows, each of which a thread computes and then works on while it is in cache.
#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "codegen/cpu/extern/convolution.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// Rows [first, first + rows) of an image, and the rows of the input that they read.
struct Rows {
  std::int64_t image = 0, first = 0, rows = 0;
  std::int64_t input_first = 0, input_rows = 0;
  std::int64_t before = 0, after = 0;  ///< rows of padding
};

/// A primitive for all blocks of as many rows with the same padding.
struct Shape {
  dnnl::convolution_forward primitive;
  memory::desc plain, input, result, scratch;  ///< `plain`: the input as it lies
};

class ConvolutionByRows final : public ExternStep {
 public:
  ConvolutionByRows(int threads, ConcreteView input, ConcreteView result, std::shared_ptr<ResultWork> work,
                    std::vector<OnednnStep::Argument> fixed)
      : threads_(threads),
        input_(std::move(input)),
        result_(std::move(result)),
        work_(std::move(work)),
        fixed_(std::move(fixed)),
        workers_(static_cast<std::size_t>(threads)) {}

  struct Block {
    std::size_t shape = 0;
    std::int64_t input = 0, result = 0;  ///< elements before its first
    std::int64_t begin = 0, end = 0;     ///< of the work's iterations
  };
  std::vector<Shape> shapes;
  std::vector<Block> blocks;

  Status run(std::byte* const* buffers) override {
    bool moved = false;
    {
      OnednnThreads limit(threads_);
      for (OnednnStep::Argument& a : fixed_) moved |= a.operand.load(stream_, buffers);
    }
    if (moved)
      for (Worker& w : workers_) w.slots.clear();
    OnednnThreads limit(1);
    at_input_ = input_.at(buffers);
    at_result_ = result_.at(buffers);
    failed_ = nullptr;
    work_->start(buffers);
    parallel_for(threads_, static_cast<std::int64_t>(blocks.size()), 1, 1,
                 [this](std::int64_t begin, std::int64_t end, int thread) {
                   part(begin, end, static_cast<std::size_t>(thread));
                 });
    if (failed_) std::rethrow_exception(failed_);
    return work_->finish();
  }

 private:
  /// A thread's memory for blocks of one shape.
  struct Slot {
    memory plain, input, result;
    std::optional<dnnl::reorder> reorder;
    std::unordered_map<int, memory> map;
  };
  struct Worker {
    dnnl::stream stream{cpu_engine()};
    std::map<std::size_t, Slot> slots;
  };

  Slot& slot(Worker& worker, std::size_t shape) {
    auto [at, fresh] = worker.slots.try_emplace(shape);
    Slot& s = at->second;
    if (!fresh) return s;
    const Shape& made = shapes[shape];
    s.plain = memory(made.plain, cpu_engine(), DNNL_MEMORY_NONE);
    s.input = s.plain;
    if (made.plain != made.input) {
      s.input = memory(made.input, cpu_engine());
      s.reorder.emplace(s.plain, s.input);
    }
    s.result = memory(made.result, cpu_engine(), DNNL_MEMORY_NONE);
    s.map = {
        {DNNL_ARG_SRC, s.input}, {DNNL_ARG_DST, s.result}, {DNNL_ARG_SCRATCHPAD, memory(made.scratch, cpu_engine())}};
    for (OnednnStep::Argument& a : fixed_) s.map.emplace(a.role, a.operand.memory());
    return s;
  }

  void part(std::int64_t begin, std::int64_t end, std::size_t thread) {
    try {
      Worker& worker = workers_[thread];
      for (std::int64_t i = begin; i < end; ++i) {
        const Block& block = blocks[static_cast<std::size_t>(i)];
        Slot& s = slot(worker, block.shape);
        s.plain.set_data_handle(at_input_ + block.input * static_cast<std::int64_t>(itemsize(input_.dtype)));
        s.result.set_data_handle(at_result_ + block.result * static_cast<std::int64_t>(itemsize(result_.dtype)));
        if (s.reorder) s.reorder->execute(worker.stream, s.plain, s.input);
        shapes[block.shape].primitive.execute(worker.stream, s.map);
        work_->run(block.begin, block.end);
      }
    } catch (const dnnl::error&) {
      const std::lock_guard lock(mutex_);
      failed_ = std::current_exception();
    }
  }

  int threads_;
  ConcreteView input_, result_;
  std::shared_ptr<ResultWork> work_;
  std::vector<OnednnStep::Argument> fixed_;  ///< weight and bias
  std::vector<Worker> workers_;
  dnnl::stream stream_{cpu_engine()};
  std::byte *at_input_ = nullptr, *at_result_ = nullptr;
  std::mutex mutex_;
  std::exception_ptr failed_;
};

/// How many rows a block has; the last one of an image may have fewer. `why_not`: why there should be no blocks.
std::optional<std::int64_t> rows_of_block(const ConcreteView& input, const ConcreteView& kernel,
                                          const ConcreteView& result, const ResultWork& work, std::int64_t per_row,
                                          int threads, std::string& why_not) {
  const auto bytes = [](const ConcreteView& v) {
    std::int64_t n = static_cast<std::int64_t>(itemsize(v.dtype));
    for (std::int64_t size : v.sizes) n *= size;
    return n;
  };
  constexpr std::int64_t second_cache = 1 << 18;  // a good part of a core's, which also holds the block
  if (bytes(kernel) > std::max(second_cache, 2 * bytes(result))) {
    why_not = "the weights, which each block would read, are larger than the result";
    return std::nullopt;
  }
  const std::int64_t images = result.sizes[0], rows = result.sizes[2];
  const std::int64_t row_bytes = (bytes(input) + bytes(result)) / (images * rows);
  const std::int64_t least = (rows * row_bytes - 1) / (2 * second_cache) + 1;
  for (std::int64_t parts = least; parts <= rows; ++parts) {
    const std::int64_t block = (rows + parts - 1) / parts;
    if (block * per_row % work.alignment != 0 || rows * per_row % work.alignment != 0) continue;
    // Threads take as many blocks each. The last one that has any must not have much less to do.
    const std::int64_t blocks = images * ((rows + block - 1) / block), share = (blocks + threads - 1) / threads;
    if (10 * images * rows >= 9 * threads * std::min(share * block, images * rows)) return block;
  }
  why_not = fmt::format("{} rows do not make equal blocks for {} threads", images * rows, threads);
  return std::nullopt;
}

/// The rows of the result from `first`, with the rows of the input that they read.
Rows rows_at(const ConvolutionArguments& g, std::int64_t image, std::int64_t first, std::int64_t rows,
             std::int64_t input_rows, std::int64_t span) {
  Rows r{image, first, rows};
  const std::int64_t begin = first * g.strides[0] - g.padding[0];
  const std::int64_t end = (first + r.rows - 1) * g.strides[0] - g.padding[0] + span;
  r.input_first = std::clamp<std::int64_t>(begin, 0, input_rows);
  r.input_rows = std::clamp<std::int64_t>(end, 0, input_rows) - r.input_first;
  r.before = r.input_first - begin;
  r.after = end - r.input_first - r.input_rows;
  return r;
}

/// So many rows of one image.
ConcreteView part_of(ConcreteView v, std::int64_t rows) {
  v.sizes[0] = 1;
  v.sizes[2] = rows;
  return v;
}

memory::desc channels_last(const ConcreteView& v) {
  memory::dims strides(v.sizes.size());
  std::int64_t next = v.sizes[1];
  strides[1] = 1;
  for (std::size_t d = v.sizes.size(); d-- > 2; next *= v.sizes[d]) strides[d] = next;
  strides[0] = next;
  return memory::desc(v.sizes, onednn_type(v.dtype), strides);
}

}  // namespace

std::optional<std::int64_t> iterations_per_row(const ConcreteView& result, const ResultWork& work) {
  const std::int64_t rows = result.sizes[0] * result.sizes[2];
  std::int64_t inner = 1;
  for (std::size_t d = 1; d < result.sizes.size(); ++d)
    if (d != 2 && result.sizes[d] > 1) inner = std::max(inner, result.strides[d] * result.sizes[d]);
  const bool ordered =
      (result.sizes[2] == 1 || result.strides[2] >= inner) &&
      (result.sizes[0] == 1 || result.strides[0] >= std::max(inner, result.strides[2] * result.sizes[2]));
  if (!ordered || work.iterations % rows != 0) return std::nullopt;
  return work.iterations / rows;
}

Prepared prepare_convolution_rows(const ExternContext& context, const ConvolutionArguments& g,
                                  const ConcreteView& input, const ConcreteView& kernel,
                                  const std::optional<ConcreteView>& bias, const ConcreteView& out,
                                  std::string& why_not) {
  if (!context.work) return refused(why_not, "there is no work on whole rows");
  if (out.sizes[1] > 1 && out.strides[1] != 1) return refused(why_not, "the result's channels are not innermost");
  const auto per_row = iterations_per_row(out, *context.work);
  if (!per_row) return refused(why_not, "the work does not go row by row");
  const auto height = rows_of_block(input, kernel, out, *context.work, *per_row, context.threads, why_not);
  if (!height) return {};

  const std::int64_t span =
      (kernel.sizes[kernel.sizes.size() - (input.sizes.size() - 2)] - 1) * (g.dilation[0] + 1) + 1;
  OnednnThreads limit(1);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  std::vector<Shape> shapes;
  std::map<std::array<std::int64_t, 4>, std::size_t> known;  ///< rows and padding: index of the shape
  std::vector<ConvolutionByRows::Block> blocks;
  memory::desc weights(kernel.sizes, onednn_type(kernel.dtype), memory::format_tag::any);
  std::string library;
  for (std::int64_t image = 0; image < out.sizes[0]; ++image)
    for (std::int64_t first = 0; first < out.sizes[2]; first += *height) {
      const Rows r = rows_at(g, image, first, std::min(*height, out.sizes[2] - first), input.sizes[2], span);
      if (r.input_rows < 1) return refused(why_not, "rows that read only padding");
      const auto [at, fresh] = known.try_emplace({r.rows, r.input_rows, r.before, r.after}, shapes.size());
      if (fresh) {
        const ConcreteView from = part_of(input, r.input_rows), to = part_of(out, r.rows);
        const auto plain = describe(from), result = describe(to);
        if (!plain || !result) return refused(why_not, "a stride that oneDNN does not take");
        const memory::desc wanted = input.sizes[1] == 1 || input.strides[1] == 1 ? *plain : channels_last(from);
        memory::dims before = g.padding, after = g.after;
        before[0] = r.before;
        after[0] = r.after;
        const auto kind = dnnl::prop_kind::forward_inference;
        const auto algorithm = dnnl::algorithm::convolution_direct;
        const auto desc = bias ? dnnl::convolution_forward::desc(kind, algorithm, wanted, weights, dense(*bias),
                                                                 *result, g.strides, g.dilation, before, after)
                               : dnnl::convolution_forward::desc(kind, algorithm, wanted, weights, *result, g.strides,
                                                                 g.dilation, before, after);
        const dnnl::convolution_forward::primitive_desc pd(desc, attributes, cpu_engine());
        library = pd.impl_info_str();
        if (library.starts_with("ref")) return refused(why_not, "oneDNN has only its slow form for blocks of rows");
        weights = pd.weights_desc();
        shapes.push_back({dnnl::convolution_forward(pd), *plain, wanted, *result, pd.scratchpad_desc()});
      }
      blocks.push_back({at->second, image * input.strides[0] + r.input_first * input.strides[2],
                        image * out.strides[0] + first * out.strides[2], (image * out.sizes[2] + first) * *per_row,
                        (image * out.sizes[2] + first + r.rows) * *per_row});
    }
  std::vector<OnednnStep::Argument> fixed;
  fixed.push_back(
      {DNNL_ARG_WEIGHTS, PrimitiveOperand(kernel, *describe(kernel), weights, weights_of(context, kernel.buffer))});
  if (bias) fixed.push_back({DNNL_ARG_BIAS, PrimitiveOperand(*bias, *describe(*bias), dense(*bias))});
  auto step = std::make_unique<ConvolutionByRows>(context.threads, input, out, context.work, std::move(fixed));
  step->shapes = std::move(shapes);
  step->blocks = std::move(blocks);
  return {std::move(step), "oneDNN " + library, true,
          fmt::format("in blocks of {} row{}", *height, *height == 1 ? "" : "s")};
}

}  // namespace partita::codegen
