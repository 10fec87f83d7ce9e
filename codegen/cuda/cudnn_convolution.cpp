// Convolutions and their gradients by cuDNN. As in matrix/convolution.cpp, a convolution relates a large tensor, the
// image, to a small one: forward makes the small tensor, and a transposed convolution the large one.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "codegen/cuda/cudnn.h"
#include "codegen/cuda/cudnn_layout.h"
#include "codegen/cuda/library_calls.h"
#include "core/base/config.h"

namespace partita::codegen {
namespace {

using schedule::PlanView;

// cudnnMathType_t
constexpr int any_math = 0, tensor_math = 1, fma_math = 3;
constexpr int cross_correlation = 1;  // cudnnConvolutionMode_t: the window is not mirrored
/// Beyond this, an algorithm's speed is not worth its memory.
constexpr std::size_t largest_workspace = 256 << 20;
constexpr std::int64_t tensor_core_alignment = 16;  // of memory that tensor cores read

constexpr int f32 = 0, f64 = 1, f16 = 2, bf16 = 9;  // cudnnDataType_t

struct CudnnType {
  int number, compute, math;
};
/// Sums are in single precision at least. On tensor cores single precision would be rounded to TF32.
std::optional<CudnnType> cudnn_type(DType dtype) {
  if (dtype == DType::Float32) return CudnnType{f32, f32, config().cuda_tf32 ? any_math : fma_math};
  if (dtype == DType::Float64) return CudnnType{f64, f64, any_math};
  if (dtype == DType::Float16) return CudnnType{f16, f32, tensor_math};
  if (dtype == DType::BFloat16) return CudnnType{bf16, f32, tensor_math};
  return std::nullopt;
}

using Descriptor = std::unique_ptr<void, int (*)(void*)>;

class ConvolutionStep final : public DeviceStep {
 public:
  ConvolutionStep(std::shared_ptr<CudnnHandle> handle, CudnnType type, const ConvolutionWindow& window)
      : handle_(std::move(handle)), api_(handle_->api), type_(type), window_(with_height(window)) {}

  /// Each makes one of the three tensors, as [images, channels, ...]. Errors are reasons to do it otherwise.
  Status into_small(const ConcreteView& small, const ConcreteView& large, const ConcreteView& weight) {
    TRY(Layouts l, layouts(small, large, weight));
    return add(
        {&api_.forward, "forward", large, weight, small, std::move(l.large), std::move(l.weight), std::move(l.small)});
  }
  Status into_large(const ConcreteView& small, const ConcreteView& large, const ConcreteView& weight) {
    TRY(Layouts l, layouts(small, large, weight));
    return add({&api_.to_image, "backward data", weight, small, large, std::move(l.weight), std::move(l.small),
                std::move(l.large)});
  }
  Status into_weight(const ConcreteView& small, const ConcreteView& large, const ConcreteView& weight) {
    TRY(Layouts l, layouts(small, large, weight));
    return add({&api_.to_filter, "backward filter", large, small, weight, std::move(l.large), std::move(l.small),
                std::move(l.weight)});
  }

  /// Adds a number for each channel to the result of what was added last.
  Status add_bias(const ConcreteView& bias) {
    ConcreteView v = bias;
    v.sizes.assign(window_.stride.size() + 2, 1);
    v.sizes[1] = bias.sizes[0];
    v.strides = packed_strides(v.sizes, false);
    if (bias.sizes[0] != 1 && bias.strides[0] != 1) return refusal("strides of the bias that it does not take");
    TRY(bias_layout_, tensor(v, false));
    bias_ = v;
    return {};
  }

  /// "cuDNN 9.1.0, forward algorithm 1 with bias"
  std::string text() const {
    std::string out = version_text(api_);
    for (const Part& part : parts_) out += fmt::format(", {} algorithm {}", part.name, part.algorithm);
    return out + (bias_ ? " with bias" : "");
  }

  Status run_in(void* stream, std::byte* const* buffers) override {
    const auto entered = handle_->device->enter();
    TRY_DO(checked(api_, api_.set_stream(handle_->handle, stream), "cudnnSetStream"));
    for (const Part& p : parts_) TRY_DO(convolve(p, p.a.at(buffers), p.b.at(buffers), p.out.at(buffers)));
    if (!bias_) return {};
    const Part& last = parts_.back();
    return checked(api_,
                   api_.add(handle_->handle, scalar(one), bias_layout_.get(), bias_->at(buffers), scalar(one),
                            last.out_layout.get(), last.out.at(buffers)),
                   "cudnnAddTensor");
  }

 private:
  struct Part {
    const Cudnn::Routine* routine = nullptr;
    std::string_view name;  ///< "backward data"
    ConcreteView a, b, out;
    Descriptor a_layout, b_layout, out_layout;
    Descriptor convolution = {nullptr, nullptr};
    int algorithm = 0;
    std::size_t workspace_bytes = 0;
    std::shared_ptr<RemoteMemory> workspace = {};  ///< null: it needs none
  };
  struct Layouts {
    Descriptor small, large, weight;
  };
  struct Algorithm {
    int number = 0, math = 0;
    std::size_t workspace_bytes = 0;
    std::pair<int, int> name() const { return {number, math}; }
  };
  /// Scalars are read in the type of the sums.
  struct Scalar {
    float single;
    double full;
  };
  static constexpr Scalar one{1, 1}, zero{0, 0};
  const void* scalar(const Scalar& n) const {
    return type_.compute == f64 ? static_cast<const void*>(&n.full) : &n.single;
  }

  template <class... Arguments>
  Result<Descriptor> descriptor(int (*create)(void**), int (*destroy)(void*), const char* name,
                                int (*set)(void*, Arguments...), std::type_identity_t<Arguments>... arguments) const {
    void* made = nullptr;
    TRY_DO(checked(api_, create(&made), name));
    Descriptor out(made, destroy);
    TRY_DO(checked(api_, set(made, arguments...), name));
    return out;
  }

  Result<Descriptor> tensor(const ConcreteView& v, bool channels_last) const {
    ConcreteView as = v;
    // cuDNN knows a packed tensor by all strides, those of dimensions of one element too.
    if (packed(v, channels_last))
      as.strides = packed_strides(v.sizes, channels_last);
    else if (packed(v, !channels_last))
      as.strides = packed_strides(v.sizes, !channels_last);
    else if (!nested(v))
      return refusal("strides that it does not take");
    for (std::size_t d = 0; d < v.sizes.size(); ++d)
      if (v.sizes[d] == 1 && as.strides[d] < 1) as.strides[d] = 1;
    std::int64_t last = 0;
    for (std::size_t d = 0; d < v.sizes.size(); ++d) last += (v.sizes[d] - 1) * as.strides[d];
    TRY(const std::vector<int> sizes, narrow(as.sizes));
    TRY(const std::vector<int> strides, narrow(as.strides));
    TRY_DO(narrow({last}));
    return descriptor(api_.tensor_create, api_.tensor_destroy, "cudnnSetTensorNdDescriptor", api_.tensor_set,
                      type_.number, static_cast<int>(sizes.size()), sizes.data(), strides.data());
  }

  Result<Descriptor> filter(const ConcreteView& v, bool channels_last) const {
    if (!packed(v, channels_last)) channels_last = !channels_last;
    if (!packed(v, channels_last)) return refusal("strides of the weight that it does not take");
    TRY(const std::vector<int> sizes, narrow(v.sizes));
    return descriptor(api_.filter_create, api_.filter_destroy, "cudnnSetFilterNdDescriptor", api_.filter_set,
                      type_.number, int{channels_last}, static_cast<int>(sizes.size()), sizes.data());
  }

  Result<Descriptor> convolution() const {
    TRY(const std::vector<int> padding, narrow(window_.padding));
    TRY(const std::vector<int> stride, narrow(window_.stride));
    TRY(const std::vector<int> dilation, narrow(window_.dilation));
    TRY(Descriptor made,
        descriptor(api_.convolution_create, api_.convolution_destroy, "cudnnSetConvolutionNdDescriptor",
                   api_.convolution_set, static_cast<int>(stride.size()), padding.data(), stride.data(),
                   dilation.data(), cross_correlation, type_.compute));
    TRY_DO(
        checked(api_, api_.set_groups(made.get(), static_cast<int>(window_.groups)), "cudnnSetConvolutionGroupCount"));
    TRY_DO(checked(api_, api_.set_math(made.get(), type_.math), "cudnnSetConvolutionMathType"));
    return made;
  }

  /// cuDNN computes the small tensor's sizes from the others, and knows no others.
  Status check_sizes(const ConcreteView& small, const ConcreteView& large, const ConcreteView& weight) const {
    for (const ConcreteView* v : {&small, &large, &weight}) {
      if (std::ranges::find(v->sizes, 0) != v->sizes.end()) return refusal("nothing to convolve");
      if (v->offset * static_cast<std::int64_t>(itemsize(v->dtype)) % tensor_core_alignment != 0)
        return refusal("a tensor that does not begin at a multiple of 16 bytes");
    }
    for (std::size_t d = 2; d < weight.sizes.size(); ++d) {
      const std::int64_t reach = window_.dilation[d - 2] * (weight.sizes[d] - 1) + 1;
      const std::int64_t room = large.sizes[d] + 2 * window_.padding[d - 2] - reach;
      if (room < 0 || room / window_.stride[d - 2] + 1 != small.sizes[d])
        return refusal("an output padding that it does not take");
    }
    return {};
  }

  Result<Layouts> layouts(const ConcreteView& given_small, const ConcreteView& given_large,
                          const ConcreteView& given_weight) const {
    const std::size_t rank = given_weight.sizes.size();
    if (given_small.sizes.size() != rank || given_large.sizes.size() != rank || rank < 3 || rank > 5)
      return refusal("a rank that it does not take");
    const ConcreteView small = with_height(given_small), large = with_height(given_large),
                       weight = with_height(given_weight);
    TRY_DO(check_sizes(small, large, weight));
    // What lies in both orders is to lie as the others do.
    const auto last = [](const ConcreteView& v) { return packed(v, true) && !packed(v, false); };
    const bool channels_last = last(small) || last(large) || last(weight);
    TRY(Descriptor small_layout, tensor(small, channels_last));
    TRY(Descriptor large_layout, tensor(large, channels_last));
    TRY(Descriptor weight_layout, filter(weight, channels_last));
    return Layouts{std::move(small_layout), std::move(large_layout), std::move(weight_layout)};
  }

  Status add(Part p) {
    TRY(p.convolution, convolution());
    TRY_DO(choose(p));
    parts_.push_back(std::move(p));
    return {};
  }

  Status convolve(const Part& p, const std::byte* a, const std::byte* b, std::byte* out) const {
    void* const workspace = p.workspace ? reinterpret_cast<void*>(p.workspace->address()) : nullptr;
    const int error =
        p.routine->run(handle_->handle, scalar(one), p.a_layout.get(), a, p.b_layout.get(), b, p.convolution.get(),
                       p.algorithm, workspace, p.workspace_bytes, scalar(zero), p.out_layout.get(), out);
    return checked(api_, error, fmt::format("cudnnConvolution{}", p.routine->name).c_str());
  }

  /// Those that compute as precisely as they should and need little memory, in the library's order: by its guess the
  /// fastest is first.
  Result<std::vector<Algorithm>> algorithms(const Part& p) const {
    void* const handle = handle_->handle;
    const std::string name = fmt::format("cudnnGetConvolution{}Algorithm_v7", p.routine->name);
    int most = 0, count = 0;
    TRY_DO(checked(api_, p.routine->most(handle, &most), name.c_str()));
    std::vector<Cudnn::Found> found(static_cast<std::size_t>(most));
    TRY_DO(checked(api_,
                   p.routine->algorithms(handle, p.a_layout.get(), p.b_layout.get(), p.convolution.get(),
                                         p.out_layout.get(), most, &count, found.data()),
                   name.c_str()));
    std::vector<Algorithm> out;
    for (const Cudnn::Found& f : std::span(found).first(static_cast<std::size_t>(std::clamp(count, 0, most)))) {
      if (f.status != 0 || (config().deterministic && !f.deterministic)) continue;
      // Tensor cores round single precision to TF32, and the remaining kind of math to half types.
      const bool precise =
          f.math == any_math || f.math == fma_math || (f.math == tensor_math && type_.math != fma_math);
      if (!precise || !takes_math(p, f.math)) continue;
      std::size_t bytes = 0;
      if (p.routine->workspace(handle, p.a_layout.get(), p.b_layout.get(), p.convolution.get(), p.out_layout.get(),
                               f.algorithm, &bytes) == 0 &&
          bytes <= largest_workspace)
        out.push_back({f.algorithm, f.math, bytes});
    }
    return out;
  }
  bool takes_math(const Part& p, int math) const {
    return type_.math == fma_math || api_.set_math(p.convolution.get(), math) == 0;
  }

  Status choose(Part& p) const {
    TRY(std::vector<Algorithm> found, algorithms(p));
    if (config().cudnn_benchmark && !config().deterministic && found.size() > 1) fastest_first(p, found);
    for (const Algorithm& a : found)
      if (take(p, a, false)) return {};
    return refusal(
        fmt::format("it has no {}algorithm for this convolution", config().deterministic ? "deterministic " : ""));
  }
  /// False: there is no memory for it. That of a trial is its own, and goes with it.
  bool take(Part& p, const Algorithm& a, bool trial) const {
    if (!takes_math(p, a.math)) return false;
    p.algorithm = a.number;
    p.workspace_bytes = a.workspace_bytes;
    p.workspace = nullptr;
    if (a.workspace_bytes == 0) return true;
    auto memory = trial ? handle_->device->block(a.workspace_bytes) : handle_->workspace(a.workspace_bytes);
    if (!memory) return false;
    p.workspace = *std::move(memory);
    return true;
  }

  /// Moves the algorithm to the front that takes the least time on the device. Convolutions of one kind are timed once.
  /// Without memory for trials the order stays.
  void fastest_first(Part& p, std::vector<Algorithm>& found) const {
    std::string kind = fmt::format("{} {} {}", p.routine->name, type_.number, type_.math);
    for (const ConcreteView* v : {&p.a, &p.b, &p.out})
      kind += fmt::format(", {} {}", fmt::join(v->sizes, " "), fmt::join(v->strides, " "));
    kind += fmt::format(", {}, {}, {}, {}", fmt::join(window_.stride, " "), fmt::join(window_.padding, " "),
                        fmt::join(window_.dilation, " "), window_.groups);
    const auto [fastest, fresh] = handle_->fastest.try_emplace(kind, found.front().name());
    if (fresh) {
      std::array<std::shared_ptr<RemoteMemory>, 3> tensors;
      std::array<std::byte*, 3> at;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const ConcreteView& v = *std::array{&p.a, &p.b, &p.out}[i];
        std::int64_t last = 0;
        for (std::size_t d = 0; d < v.sizes.size(); ++d) last += (v.sizes[d] - 1) * v.strides[d];
        const std::size_t bytes = static_cast<std::size_t>(last + 1) * itemsize(v.dtype);
        auto memory = handle_->device->block(bytes);
        if (!memory || !handle_->device->clear((*memory)->address(), bytes)) return;
        tensors[i] = *std::move(memory);
        at[i] = reinterpret_cast<std::byte*>(tensors[i]->address());
      }
      double least = std::numeric_limits<double>::infinity();
      for (const Algorithm& a : found) {
        if (!take(p, a, true)) continue;
        const auto seconds = seconds_of(p, at);
        if (!seconds || *seconds >= least) continue;  // an error: it cannot be recorded
        least = *seconds;
        fastest->second = a.name();
      }
    }
    std::ranges::stable_partition(found, [&](const Algorithm& a) { return a.name() == fastest->second; });
  }

  /// The least time of a few runs on the device. As a CUDA graph they wait for no launches.
  Result<double> seconds_of(const Part& p, const std::array<std::byte*, 3>& at) const {
    CudaDevice& device = *handle_->device;
    TRY(const std::shared_ptr<void> graph, device.record([&](void* stream) -> Status {
      TRY_DO(checked(api_, api_.set_stream(handle_->handle, stream), "cudnnSetStream"));
      return convolve(p, at[0], at[1], at[2]);
    }));
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 4; ++i) {
      TRY(const std::shared_ptr<void> begin, device.record_event());
      TRY_DO(device.replay(graph.get()));
      TRY(const std::shared_ptr<void> end, device.record_event());
      TRY(const double seconds, device.seconds_between(begin.get(), end.get()));
      least = std::min(least, seconds);
    }
    return least;
  }

  std::shared_ptr<CudnnHandle> handle_;
  const Cudnn& api_;
  CudnnType type_;
  ConvolutionWindow window_;
  std::vector<Part> parts_;
  std::optional<ConcreteView> bias_;
  Descriptor bias_layout_{nullptr, nullptr};
};

const PlanView* tensor_at(const ExternContext& context, std::size_t i) {
  return std::get_if<PlanView>(&context.arg(i));
}

/// Adds the parts of a call to the step that it makes. Errors are reasons to do it otherwise.
Result<std::unique_ptr<ConvolutionStep>> convolution(const std::shared_ptr<CudnnHandle>& handle,
                                                     const ExternContext& context, const CudnnType& type) {
  const auto input = context.view(0), weight = context.view(1), bias = context.view(2);
  const auto out = concrete_view(context.call.results[0]);
  if (!input || !weight || !out || (tensor_at(context, 2) && !bias)) return refusal(std::string(symbolic_sizes));
  const auto window = convolution_window(context, 3, weight->sizes.size() - 2);
  if (!window) return refusal(std::string(symbolic_sizes));
  auto step = std::make_unique<ConvolutionStep>(handle, type, *window);
  TRY_DO(window->transposed ? step->into_large(*input, *out, *weight) : step->into_small(*out, *input, *weight));
  if (bias) TRY_DO(step->add_bias(*bias));
  return step;
}

Result<std::unique_ptr<ConvolutionStep>> gradients(const std::shared_ptr<CudnnHandle>& handle,
                                                   const ExternContext& context, const CudnnType& type) {
  const auto grad = context.view(0), input = context.view(1), weight = context.view(2);
  if (!grad || !input || !weight) return refusal(std::string(symbolic_sizes));
  const auto window = convolution_window(context, 4, weight->sizes.size() - 2);
  if (!window) return refusal(std::string(symbolic_sizes));
  auto step = std::make_unique<ConvolutionStep>(handle, type, *window);
  const ConcreteView& small = window->transposed ? *input : *grad;
  const ConcreteView& large = window->transposed ? *grad : *input;
  if (wants_gradient(context, 0)) {
    const auto out = concrete_view(context.call.results[0]);
    if (!out) return refusal(std::string(symbolic_sizes));
    TRY_DO(window->transposed ? step->into_small(*out, large, *weight) : step->into_large(small, *out, *weight));
  }
  if (wants_gradient(context, 1)) {
    const auto out = concrete_view(context.call.results[1]);
    if (!out) return refusal(std::string(symbolic_sizes));
    TRY_DO(step->into_weight(small, large, *out));
  }
  return step;
}

}  // namespace

Prepared prepare_cudnn(const std::shared_ptr<CudaDevice>& device, const ExternContext& context, std::string& why_not) {
  const Cudnn* api = cudnn();
  if (!api) return {};
  const auto refused = [&](const std::string& why) {
    why_not = why == symbolic_sizes ? why : fmt::format("{}: {}", version_text(*api), why);
    return Prepared();
  };
  const bool backward = context.routine == LibraryRoutine::ConvolutionBackward;
  const PlanView* weight = tensor_at(context, backward ? 2 : 1);
  const auto type = weight ? cudnn_type(weight->dtype) : std::nullopt;
  const auto other = [&](const PlanView& v) { return v.buffer >= 0 && v.dtype != weight->dtype; };
  if (!type || std::ranges::any_of(context.call.results, other)) return refused("a dtype that it does not take");
  for (const std::size_t i : {std::size_t{0}, std::size_t{backward ? 1U : 2U}})
    if (const PlanView* v = tensor_at(context, i); v && other(*v)) return refused("a dtype that it does not take");
  if (!context.call.around.empty()) return refused("zeros around the image");
  if (backward && wants_gradient(context, 2)) return refused("the gradient of a bias");
  if (backward && !wants_gradient(context, 0) && !wants_gradient(context, 1)) return refused("nothing to convolve");
  const auto handle = handle_of<CudnnHandle>(device, *api);
  if (!handle) return refused(handle.error().message);
  const auto entered = device->enter();
  auto step = backward ? gradients(*handle, context, *type) : convolution(*handle, context, *type);
  if (!step) return refused(step.error().message);
  const std::string library = (*step)->text();
  return {.step = *std::move(step), .library = library, .on_device = true};
}

}  // namespace partita::codegen
