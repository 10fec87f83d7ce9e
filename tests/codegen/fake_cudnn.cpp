// cuDNN's library without a device: it convolves in the memory that the fake driver gives out, as NVIDIA's
// documentation says of each function. For test_cuda_cudnn.cpp.
#include "tests/codegen/fake_cudnn.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

namespace {

// cudnnDataType_t, cudnnTensorFormat_t, cudnnMathType_t and a few errors of version 9.
constexpr int f32 = 0, f64 = 1, f16 = 2, bf16 = 9;
constexpr int channels_last = 1;
constexpr int any_math = 0, tensor_math = 1, fma_math = 3;
constexpr int bad_parameter = 2000, not_supported = 3000;

using Numbers = std::vector<int>;

struct Tensor {
  int type = -1;
  Numbers sizes, strides;
};
struct Convolution {
  Numbers padding, stride, dilation;
  int compute = -1, groups = 1, math = any_math;
};
struct Found {
  int algorithm, status;
  float milliseconds;
  std::size_t workspace_bytes;
  int deterministic, math;
  int reserved[3];
};

FakeCudnn state;
void* stream_of_handle = nullptr;

double load(const void* p, int type, std::int64_t i) {
  if (type == f32) return static_cast<const float*>(p)[i];
  if (type == f64) return static_cast<const double*>(p)[i];
  if (type == f16) return static_cast<double>(static_cast<const _Float16*>(p)[i]);
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(p)[i]} << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
void store(void* p, int type, std::int64_t i, double value) {
  if (type == f32) static_cast<float*>(p)[i] = static_cast<float>(value);
  if (type == f64) static_cast<double*>(p)[i] = value;
  if (type == f16) static_cast<_Float16*>(p)[i] = static_cast<_Float16>(value);
  if (type != bf16) return;
  const auto single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  static_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::int64_t place(const Tensor& t, const Numbers& at) {
  std::int64_t out = 0;
  for (std::size_t d = 0; d < at.size(); ++d) out += std::int64_t{at[d]} * t.strides[d];
  return out;
}
void for_each(const Numbers& sizes, const std::function<void(const Numbers&)>& f) {
  std::int64_t count = 1;
  for (const int n : sizes) count *= n;
  Numbers at(sizes.size());
  for (std::int64_t i = 0; i < count; ++i) {
    f(at);
    for (std::size_t d = sizes.size(); d-- > 0 && ++at[d] == sizes[d];) at[d] = 0;
  }
}

/// What tensor cores make of a number of single precision: 11 bits of it.
double factor(double value, int type, int math) {
  if (type != f32 || math == fma_math) return value;
  int exponent;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(fraction * 2048) / 2048, exponent);
}

/// Calls f with the places of an element of the image, the filter and the result of forward that meet.
void for_each_meeting(const Tensor& image, const Tensor& filter, const Tensor& result, const Convolution& c,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) {
  const int channels = filter.sizes[1], per_group = filter.sizes[0] / c.groups;
  for_each(result.sizes, [&](const Numbers& o) {
    for_each(filter.sizes, [&](const Numbers& k) {
      if (k[0] != o[1]) return;
      Numbers i = {o[0], o[1] / per_group * channels + k[1]};
      for (std::size_t d = 2; d < o.size(); ++d) {
        i.push_back(o[d] * c.stride[d - 2] - c.padding[d - 2] + k[d] * c.dilation[d - 2]);
        if (i[d] < 0 || i[d] >= image.sizes[d]) return;
      }
      f(place(image, i), place(filter, k), place(result, o));
    });
  });
}

int checked_sizes(const Tensor& image, const Tensor& filter, const Tensor& result, const Convolution& c) {
  const std::size_t rank = filter.sizes.size();
  if (image.sizes.size() != rank || result.sizes.size() != rank || c.stride.size() + 2 != rank) return bad_parameter;
  if (image.type != filter.type || result.type != filter.type) return bad_parameter;
  if (c.compute != (filter.type == f64 ? f64 : f32)) return bad_parameter;
  if (image.sizes[0] != result.sizes[0] || image.sizes[1] != filter.sizes[1] * c.groups ||
      result.sizes[1] != filter.sizes[0] || filter.sizes[0] % c.groups != 0)
    return bad_parameter;
  for (std::size_t d = 2; d < rank; ++d) {
    const int reach = (filter.sizes[d] - 1) * c.dilation[d - 2] + 1;
    if (result.sizes[d] != (image.sizes[d] + 2 * c.padding[d - 2] - reach) / c.stride[d - 2] + 1) return bad_parameter;
  }
  return 0;
}

/// The algorithms of a routine: the first computes in any order, the greedy one wants much memory.
constexpr int unordered = 0, greedy = 2;
std::size_t workspace_of(int algorithm) {
  return algorithm == greedy ? std::size_t{300} << 20 : algorithm == unordered ? 4096 : state.workspace_bytes;
}
int find_algorithms(const Convolution& c, const Tensor& filter, int most, int* count, Found* found) {
  *count = 0;
  if (most < 4) return bad_parameter;
  if (state.refuses) return state.refuses;
  if (state.has_none) return 0;
  // Without fma_math, what is faster comes first; the order says so even where fma_math was asked for.
  const int tensor = filter.type == f64 ? any_math : tensor_math;
  for (const Found& f : {Found{5, not_supported, -1, 0, 1, tensor, {}}, Found{greedy, 0, 1, 0, 1, tensor, {}},
                         Found{7, 0, 1, workspace_of(7), 1, 2, {}}, Found{6, 0, 1, workspace_of(6), 1, tensor, {}},
                         Found{unordered, 0, 2, workspace_of(unordered), 0, any_math, {}},
                         Found{1, 0, 3, workspace_of(1), 1, c.math == fma_math ? fma_math : any_math, {}}})
    if (*count < most && (f.algorithm != 6 || state.on_tensor_cores)) found[(*count)++] = f;
  return 0;
}
int find_workspace(int algorithm, std::size_t* bytes) {
  *bytes = workspace_of(algorithm);
  return algorithm == 5 ? not_supported : 0;
}

/// Sums products of two factors into the result: what the three routines have in common.
int sums(void* handle, const void* alpha, const Convolution& c, int algorithm, const void* workspace,
         std::size_t workspace_bytes, const void* beta, const Tensor& out, void* result,
         const std::function<void(const std::function<void(std::int64_t, double)>&)>& products) {
  if (state.fails) return state.fails;
  if (handle != &state || !stream_of_handle) return bad_parameter;
  if (workspace_bytes < workspace_of(algorithm) || (workspace_bytes > 0 && !workspace)) return bad_parameter;
  // The whole workspace is used, so it has to be there.
  if (workspace_bytes > 0) std::memset(const_cast<void*>(workspace), 0xff, workspace_bytes);
  const int scale = c.compute;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < out.sizes.size(); ++d) last += std::int64_t{out.sizes[d] - 1} * out.strides[d];
  std::vector<double> total(static_cast<std::size_t>(last) + 1);
  products([&](std::int64_t at, double product) { total[static_cast<std::size_t>(at)] += product; });
  for_each(out.sizes, [&](const Numbers& at) {
    const std::int64_t i = place(out, at);
    double value = load(alpha, scale, 0) * total[static_cast<std::size_t>(i)];
    if (load(beta, scale, 0) != 0) value += load(beta, scale, 0) * load(result, out.type, i);
    store(result, out.type, i, value);
  });
  state.ran.push_back({algorithm, c.math});
  if (state.on_run) state.on_run(algorithm);
  return 0;
}

template <class T>
const T& as(const void* p) {
  return *static_cast<const T*>(p);
}

}  // namespace

extern "C" {

FakeCudnn* fake_cudnn() {
  return &state;
}

std::size_t cudnnGetVersion() {
  return state.version;
}
const char* cudnnGetErrorString(int error) {
  return error == bad_parameter   ? "CUDNN_STATUS_BAD_PARAM"
         : error == not_supported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                  : "CUDNN_STATUS_EXECUTION_FAILED";
}
int cudnnCreate(void** handle) {
  *handle = nullptr;
  if (state.no_handle) return state.no_handle;
  *handle = &state;
  ++state.handles;
  return 0;
}
int cudnnDestroy(void* handle) {
  if (handle != &state) return bad_parameter;
  --state.handles;
  return 0;
}
int cudnnSetStream(void* handle, void* stream) {
  if (handle != &state) return bad_parameter;
  stream_of_handle = stream;
  return 0;
}
int cudnnCreateTensorDescriptor(void** tensor) {
  *tensor = new Tensor;
  ++state.descriptors;
  return 0;
}
int cudnnDestroyTensorDescriptor(void* tensor) {
  delete static_cast<Tensor*>(tensor);
  --state.descriptors;
  return 0;
}
int cudnnSetTensorNdDescriptor(void* tensor, int type, int dimensions, const int* sizes, const int* strides) {
  if (dimensions < 4 || dimensions > 8) return not_supported;
  for (int d = 0; d < dimensions; ++d)
    if (sizes[d] < 1 || strides[d] < 1) return bad_parameter;
  *static_cast<Tensor*>(tensor) = {type, Numbers(sizes, sizes + dimensions), Numbers(strides, strides + dimensions)};
  return 0;
}
int cudnnCreateFilterDescriptor(void** filter) {
  return cudnnCreateTensorDescriptor(filter);
}
int cudnnDestroyFilterDescriptor(void* filter) {
  return cudnnDestroyTensorDescriptor(filter);
}
/// A filter is packed.
int cudnnSetFilterNdDescriptor(void* filter, int type, int format, int dimensions, const int* sizes) {
  if (dimensions < 4 || dimensions > 8) return not_supported;
  Tensor& t = *static_cast<Tensor*>(filter);
  t = {type, Numbers(sizes, sizes + dimensions), Numbers(static_cast<std::size_t>(dimensions), 1)};
  int distance = format == channels_last ? sizes[1] : 1;
  for (auto d = static_cast<std::size_t>(dimensions); d-- > 0;) {
    if (format == channels_last && d == 1) continue;
    t.strides[d] = distance;
    distance *= sizes[d];
  }
  return 0;
}
int cudnnCreateConvolutionDescriptor(void** convolution) {
  *convolution = new Convolution;
  ++state.descriptors;
  return 0;
}
int cudnnDestroyConvolutionDescriptor(void* convolution) {
  delete static_cast<Convolution*>(convolution);
  --state.descriptors;
  return 0;
}
int cudnnSetConvolutionNdDescriptor(void* convolution, int dimensions, const int* padding, const int* stride,
                                    const int* dilation, int mode, int compute_type) {
  constexpr int cross_correlation = 1;
  if (mode != cross_correlation) return bad_parameter;
  Convolution& c = *static_cast<Convolution*>(convolution);
  c = {Numbers(padding, padding + dimensions), Numbers(stride, stride + dimensions),
       Numbers(dilation, dilation + dimensions), compute_type};
  for (const int n : c.padding)
    if (n < 0) return bad_parameter;
  for (const Numbers* list : {&c.stride, &c.dilation})
    for (const int n : *list)
      if (n < 1) return bad_parameter;
  return 0;
}
int cudnnSetConvolutionGroupCount(void* convolution, int groups) {
  static_cast<Convolution*>(convolution)->groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(void* convolution, int math) {
  static_cast<Convolution*>(convolution)->math = math;
  return 0;
}
/// `a` has the result's size or 1 in each dimension.
int cudnnAddTensor(void* handle, const void* alpha, void* a_layout, const void* a, const void* beta, void* out_layout,
                   void* out) {
  if (state.add_fails) return state.add_fails;
  const auto &from = as<Tensor>(a_layout), &to = as<Tensor>(out_layout);
  if (handle != &state || !stream_of_handle || from.sizes.size() != to.sizes.size() || from.type != to.type)
    return bad_parameter;
  const int scale = to.type == f64 ? f64 : f32;
  for_each(to.sizes, [&](const Numbers& at) {
    Numbers of = at;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (from.sizes[d] == 1) of[d] = 0;
    const std::int64_t i = place(to, at);
    store(out, to.type, i,
          load(alpha, scale, 0) * load(a, from.type, place(from, of)) + load(beta, scale, 0) * load(out, to.type, i));
  });
  return 0;
}

int cudnnGetConvolutionForwardAlgorithmMaxCount(void*, int* count) {
  *count = 8;
  return 0;
}
int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(void*, int* count) {
  *count = 6;
  return 0;
}
int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(void*, int* count) {
  *count = 7;
  return 0;
}
int cudnnGetConvolutionForwardAlgorithm_v7(void*, void* x, void* w, void* convolution, void* y, int most, int* count,
                                           Found* found) {
  const auto& c = as<Convolution>(convolution);
  if (const int bad = checked_sizes(as<Tensor>(x), as<Tensor>(w), as<Tensor>(y), c)) return bad;
  return find_algorithms(c, as<Tensor>(w), most, count, found);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void* w, void* dy, void* convolution, void* dx, int most,
                                                int* count, Found* found) {
  const auto& c = as<Convolution>(convolution);
  if (const int bad = checked_sizes(as<Tensor>(dx), as<Tensor>(w), as<Tensor>(dy), c)) return bad;
  return find_algorithms(c, as<Tensor>(w), most, count, found);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void* x, void* dy, void* convolution, void* dw, int most,
                                                  int* count, Found* found) {
  const auto& c = as<Convolution>(convolution);
  if (const int bad = checked_sizes(as<Tensor>(x), as<Tensor>(dw), as<Tensor>(dy), c)) return bad;
  return find_algorithms(c, as<Tensor>(dw), most, count, found);
}
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, std::size_t* bytes) {
  return find_workspace(algorithm, bytes);
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, std::size_t* bytes) {
  return find_workspace(algorithm, bytes);
}
int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int algorithm,
                                                   std::size_t* bytes) {
  return find_workspace(algorithm, bytes);
}

int cudnnConvolutionForward(void* handle, const void* alpha, void* x_layout, const void* x, void* w_layout,
                            const void* w, void* convolution, int algorithm, void* workspace, std::size_t bytes,
                            const void* beta, void* y_layout, void* y) {
  const auto& c = as<Convolution>(convolution);
  const auto &xl = as<Tensor>(x_layout), &wl = as<Tensor>(w_layout), &yl = as<Tensor>(y_layout);
  return sums(handle, alpha, c, algorithm, workspace, bytes, beta, yl, y, [&](const auto& add) {
    for_each_meeting(xl, wl, yl, c, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
      add(o, factor(load(x, xl.type, i), xl.type, c.math) * factor(load(w, wl.type, k), wl.type, c.math));
    });
  });
}
int cudnnConvolutionBackwardData(void* handle, const void* alpha, void* w_layout, const void* w, void* dy_layout,
                                 const void* dy, void* convolution, int algorithm, void* workspace, std::size_t bytes,
                                 const void* beta, void* dx_layout, void* dx) {
  const auto& c = as<Convolution>(convolution);
  const auto &wl = as<Tensor>(w_layout), &yl = as<Tensor>(dy_layout), &xl = as<Tensor>(dx_layout);
  return sums(handle, alpha, c, algorithm, workspace, bytes, beta, xl, dx, [&](const auto& add) {
    for_each_meeting(xl, wl, yl, c, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
      add(i, factor(load(w, wl.type, k), wl.type, c.math) * factor(load(dy, yl.type, o), yl.type, c.math));
    });
  });
}
int cudnnConvolutionBackwardFilter(void* handle, const void* alpha, void* x_layout, const void* x, void* dy_layout,
                                   const void* dy, void* convolution, int algorithm, void* workspace, std::size_t bytes,
                                   const void* beta, void* dw_layout, void* dw) {
  const auto& c = as<Convolution>(convolution);
  const auto &xl = as<Tensor>(x_layout), &yl = as<Tensor>(dy_layout), &wl = as<Tensor>(dw_layout);
  return sums(handle, alpha, c, algorithm, workspace, bytes, beta, wl, dw, [&](const auto& add) {
    for_each_meeting(xl, wl, yl, c, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
      add(k, factor(load(x, xl.type, i), xl.type, c.math) * factor(load(dy, yl.type, o), yl.type, c.math));
    });
  });
}

}  // extern "C"
