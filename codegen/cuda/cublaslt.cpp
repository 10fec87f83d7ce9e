// Matrix products by NVIDIA's cuBLASLt.
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "codegen/cuda/library_calls.h"
#include "codegen/cuda/open_library.h"
#include "core/base/config.h"

namespace partita::codegen {
namespace {

/// The parts of cublasLt.h that are used, and its enumerations. A function returns 0, or an error.
struct CublasLt {
  struct Found {
    std::uint64_t algorithm[8];
    std::size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
  };
  LibraryFunctions library;
  std::size_t (*version)() = library.find("cublasLtGetVersion");
  int (*create)(void** handle) = library.find("cublasLtCreate");
  int (*destroy)(void* handle) = library.find("cublasLtDestroy");
  int (*product_create)(void** product, int compute, int scale) = library.find("cublasLtMatmulDescCreate");
  int (*product_destroy)(void* product) = library.find("cublasLtMatmulDescDestroy");
  int (*product_set)(void* product, int attribute, const void* value,
                     std::size_t bytes) = library.find("cublasLtMatmulDescSetAttribute");
  int (*layout_create)(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t ld) = library.find("cublasLtMatrixLayoutCreate");
  int (*layout_destroy)(void* layout) = library.find("cublasLtMatrixLayoutDestroy");
  int (*layout_set)(void* layout, int attribute, const void* value,
                    std::size_t bytes) = library.find("cublasLtMatrixLayoutSetAttribute");
  int (*preference_create)(void** preference) = library.find("cublasLtMatmulPreferenceCreate");
  int (*preference_destroy)(void* preference) = library.find("cublasLtMatmulPreferenceDestroy");
  int (*preference_set)(void* preference, int attribute, const void* value,
                        std::size_t bytes) = library.find("cublasLtMatmulPreferenceSetAttribute");
  int (*heuristic)(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int most,
                   Found* found, int* count) = library.find("cublasLtMatmulAlgoGetHeuristic");
  int (*matmul)(void* handle, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                const std::uint64_t* algorithm, void* workspace, std::size_t workspace_bytes,
                void* stream) = library.find("cublasLtMatmul");
  std::string path;
};
constexpr int transpose_a = 3, transpose_b = 4, epilogue = 7, bias_pointer = 8;  // of a product
constexpr int batch_count = 5, batch_offset = 6;                                 // of a layout
constexpr int most_workspace = 1, reductions = 3, alignment_a = 5;               // of a preference; then b, c, d
constexpr std::uint32_t with_bias = 4;
constexpr std::uint32_t sum_parts_in_compute_type = 2;
constexpr std::uint64_t workspace_bytes = 32 << 20;
constexpr std::uint32_t least_alignment = 16;  // of all buffers on the device

const CublasLt* cublaslt() {
  return open_cuda_library<CublasLt>("libcublasLt.so", {".13", ".12"});
}

std::string version_text(const CublasLt& api) {
  const std::size_t v = api.version();  // 130002 is 13.0.2
  return fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

/// What the products of a device share. They run in one stream, one after another, and so may share memory.
class Handle {
 public:
  static Result<std::shared_ptr<Handle>> make(const std::shared_ptr<CudaDevice>& device, const CublasLt& api) {
    std::shared_ptr<Handle> out(new Handle(device, api));
    const auto entered = device->enter();
    TRY(out->workspace, device->block(workspace_bytes));
    if (const int status = api.create(&out->handle)) {
      out->handle = nullptr;
      return unsupported("cuda.library",
                         fmt::format("{}: cublasLtCreate ended with status {}", version_text(api), status));
    }
    return out;
  }
  ~Handle() {
    const auto entered = device->enter();
    if (handle) api.destroy(handle);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  const std::shared_ptr<CudaDevice> device;
  const CublasLt& api;
  void* handle = nullptr;
  std::shared_ptr<RemoteMemory> workspace;

 private:
  Handle(std::shared_ptr<CudaDevice> d, const CublasLt& a) : device(std::move(d)), api(a) {}
};

struct CublasType {
  int number, compute, scale;
};
/// Sums are in single precision at least.
std::optional<CublasType> cublas_type(DType dtype) {
  constexpr int f32 = 0, f64 = 1, f16 = 2, bf16 = 14;                       // cudaDataType
  constexpr int compute_32f = 68, compute_64f = 70, compute_32f_tf32 = 77;  // cublasComputeType_t
  if (dtype == DType::Float32) return CublasType{f32, config().cuda_tf32 ? compute_32f_tf32 : compute_32f, f32};
  if (dtype == DType::Float64) return CublasType{f64, compute_64f, f64};
  if (dtype == DType::Float16) return CublasType{f16, compute_32f, f32};
  if (dtype == DType::BFloat16) return CublasType{bf16, compute_32f, f32};
  return std::nullopt;
}

/// A matrix in cuBLAS's order: neighbours in memory are neighbours in a column.
struct Columns {
  std::int64_t rows = 0, columns = 0, ld = 0;
  bool transposed = false;  ///< it is the view itself; else the view's transpose
  std::int64_t batch = 1, batch_offset = 0;
};
std::optional<Columns> columns_of(const ConcreteView& v) {
  const std::size_t rank = v.sizes.size();
  const std::int64_t m = v.sizes[rank - 2], n = v.sizes[rank - 1];
  const std::int64_t down = v.strides[rank - 2], across = v.strides[rank - 1];
  Columns out;
  if (rank == 3) out.batch = v.sizes[0], out.batch_offset = v.strides[0];
  if (out.batch > INT32_MAX) return std::nullopt;
  // A dimension of one element has any stride.
  if ((across == 1 || n == 1) && (down >= n || m == 1)) {
    out.rows = n, out.columns = m, out.ld = m == 1 ? n : down;
    return out;
  }
  if ((down == 1 || m == 1) && (across >= m || n == 1)) {
    out.rows = m, out.columns = n, out.ld = n == 1 ? m : across, out.transposed = true;
    return out;
  }
  return std::nullopt;
}

class Layout {
 public:
  Layout(const CublasLt& api, int type, const Columns& c) : api_(api) {
    if (api.layout_create(&layout_, type, static_cast<std::uint64_t>(c.rows), static_cast<std::uint64_t>(c.columns),
                          c.ld) != 0)
      layout_ = nullptr;
    const auto batches = static_cast<std::int32_t>(c.batch);
    if (layout_ && c.batch != 1)
      whole_ = api.layout_set(layout_, batch_count, &batches, sizeof batches) == 0 &&
               api.layout_set(layout_, batch_offset, &c.batch_offset, sizeof c.batch_offset) == 0;
  }
  ~Layout() {
    if (layout_) api_.layout_destroy(layout_);
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  explicit operator bool() const { return layout_ && whole_; }
  void* get() const { return layout_; }

 private:
  const CublasLt& api_;
  void* layout_ = nullptr;
  bool whole_ = true;
};

/// The bytes to which a view's begin is aligned, where its buffer is to least_alignment.
std::uint32_t aligned_to(const ConcreteView& v) {
  const auto offset = static_cast<std::uint64_t>(v.offset) * itemsize(v.dtype);
  return static_cast<std::uint32_t>(std::gcd<std::uint64_t>(offset, least_alignment));
}

/// The result in cuBLAS's order is its transpose: b's transpose times a's.
class Product final : public DeviceStep {
 public:
  static Prepared prepare(std::shared_ptr<Handle> handle, const ConcreteView& a, const ConcreteView& b,
                          const std::optional<ConcreteView>& added, double alpha, double beta, const ConcreteView& out,
                          std::string& why_not) {
    const auto refused = [&](const char* why) {
      why_not = fmt::format("{}: {}", version_text(handle->api), why);
      return Prepared();
    };
    const auto type = cublas_type(a.dtype);
    const bool same = b.dtype == a.dtype && out.dtype == a.dtype && (!added || added->dtype == a.dtype);
    if (!type || !same) return refused("a dtype that it does not take");
    for (const ConcreteView* v : {&a, &b})
      for (const std::int64_t n : v->sizes)
        if (n == 0) return refused("nothing to multiply");
    const auto left = columns_of(b), right = columns_of(a), result = columns_of(out);
    if (!left || !right || !result || result->transposed) return refused("strides that it does not take");
    const std::int64_t m = out.sizes[out.sizes.size() - 2], n = out.sizes[out.sizes.size() - 1];
    const bool apart = result->batch == 1 || result->batch_offset >= (m - 1) * result->ld + n;
    if (!apart) return refused("strides that it does not take");
    auto step = std::unique_ptr<Product>(new Product(handle));
    Product& p = *step;
    p.left_ = b, p.right_ = a, p.out_ = out, p.type_ = *type, p.alpha_ = alpha;
    std::optional<Columns> third = result;
    if (added) {
      // A row that is added to all rows: cuBLAS's bias is a column of its result.
      const bool row = out.sizes.size() == 2 && beta == 1 && (m == 1 || added->strides[0] == 0) &&
                       added->sizes[1] == n && (added->strides[1] == 1 || n == 1) &&
                       aligned_to(*added) == least_alignment;
      if (row) {
        p.bias_ = *added;
      } else {
        third = added->sizes == out.sizes ? columns_of(*added) : std::nullopt;
        if (!third || third->transposed) return refused("strides of what is added that it does not take");
        p.added_ = *added;
        p.beta_ = beta;
      }
    }
    const auto entered = handle->device->enter();
    p.left_layout_ = std::make_unique<Layout>(handle->api, type->number, *left);
    p.right_layout_ = std::make_unique<Layout>(handle->api, type->number, *right);
    p.added_layout_ = std::make_unique<Layout>(handle->api, type->number, *third);
    p.out_layout_ = std::make_unique<Layout>(handle->api, type->number, *result);
    if (!p.choose(left->transposed, right->transposed)) return refused("it has no kernel for this product");
    return {.step = std::move(step),
            .library = version_text(handle->api) + (added && !p.added_ ? " with bias" : ""),
            .on_device = true};
  }
  ~Product() override {
    if (product_) handle_->api.product_destroy(product_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  Status run_in(void* stream, std::byte* const* buffers) override {
    const CublasLt& api = handle_->api;
    const auto entered = handle_->device->enter();
    int error = 0;
    if (bias_) {
      const void* bias = bias_->at(buffers);
      error = api.product_set(product_, bias_pointer, &bias, sizeof bias);
    }
    std::byte* const out = out_.at(buffers);
    // Scalars are in the scale's type, and read before matmul() returns.
    const float alpha = static_cast<float>(alpha_), beta = static_cast<float>(beta_);
    const bool is_double = type_.scale == 1;
    if (error == 0)
      error = api.matmul(handle_->handle, product_, is_double ? static_cast<const void*>(&alpha_) : &alpha,
                         left_.at(buffers), left_layout_->get(), right_.at(buffers), right_layout_->get(),
                         is_double ? static_cast<const void*>(&beta_) : &beta, added_ ? added_->at(buffers) : out,
                         added_layout_->get(), out, out_layout_->get(), found_.algorithm,
                         reinterpret_cast<void*>(handle_->workspace->address()), found_.workspace_bytes, stream);
    if (error == 0) return {};
    return Diagnostic{Fault::Internal, "cuda.library",
                      fmt::format("cublasLtMatmul of {} ended with status {}", handle_->api.path, error)};
  }

 private:
  explicit Product(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

  /// Finds a kernel; false: there is none.
  bool choose(bool left_transposed, bool right_transposed) {
    const CublasLt& api = handle_->api;
    for (const auto& layout : {left_layout_.get(), right_layout_.get(), added_layout_.get(), out_layout_.get()})
      if (!*layout) return false;
    if (api.product_create(&product_, type_.compute, type_.scale) != 0) return product_ = nullptr, false;
    // A view that is no transpose yet is transposed by the product.
    const std::int32_t a = left_transposed, b = right_transposed;
    bool whole = api.product_set(product_, transpose_a, &a, sizeof a) == 0 &&
                 api.product_set(product_, transpose_b, &b, sizeof b) == 0;
    if (bias_) {
      // The heuristic looks at the pointer's alignment only.
      const auto somewhere = reinterpret_cast<const void*>(std::uintptr_t{least_alignment});
      whole = whole && api.product_set(product_, epilogue, &with_bias, sizeof with_bias) == 0 &&
              api.product_set(product_, bias_pointer, &somewhere, sizeof somewhere) == 0;
    }
    void* preference = nullptr;
    if (!whole || api.preference_create(&preference) != 0) return false;
    whole = api.preference_set(preference, most_workspace, &workspace_bytes, sizeof workspace_bytes) == 0 &&
            api.preference_set(preference, reductions, &sum_parts_in_compute_type, sizeof(std::uint32_t)) == 0;
    const ConcreteView* const views[] = {&left_, &right_, added_ ? &*added_ : &out_, &out_};
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t bytes = aligned_to(*views[i]);
      whole = whole && api.preference_set(preference, alignment_a + i, &bytes, sizeof bytes) == 0;
    }
    int count = 0;
    whole = whole &&
            api.heuristic(handle_->handle, product_, left_layout_->get(), right_layout_->get(), added_layout_->get(),
                          out_layout_->get(), preference, 1, &found_, &count) == 0 &&
            count == 1 && found_.state == 0 && found_.workspace_bytes <= workspace_bytes;
    api.preference_destroy(preference);
    return whole;
  }

  std::shared_ptr<Handle> handle_;
  ConcreteView left_, right_, out_;
  std::optional<ConcreteView> added_, bias_;
  CublasType type_{};
  double alpha_ = 1, beta_ = 0;
  std::unique_ptr<Layout> left_layout_, right_layout_, added_layout_, out_layout_;
  void* product_ = nullptr;
  CublasLt::Found found_{};
};

}  // namespace

Prepared prepare_cublaslt(const std::shared_ptr<CudaDevice>& device, const ExternContext& context,
                          std::string& why_not) {
  const bool adds = context.routine == LibraryRoutine::AddMatmul;
  const CublasLt* api = cublaslt();
  if (!api) return {};
  auto handle = handle_of<Handle>(device, *api);
  if (!handle) return why_not = handle.error().message, Prepared();
  const auto a = context.view(adds ? 1 : 0), b = context.view(adds ? 2 : 1);
  const auto out = concrete_view(context.call.results[0]);
  auto added = adds ? context.view(0) : std::nullopt;
  const auto beta = adds ? context.number(3) : 0.0, alpha = adds ? context.number(4) : 1.0;
  if (!a || !b || !out || !beta || !alpha || (adds && !added)) {
    why_not = cublas_type(context.call.results[0].dtype) ? symbolic_sizes : "a dtype that it does not take";
    return {};
  }
  // What is added is shown in the result's sizes.
  while (added && added->sizes.size() < out->sizes.size()) {
    added->sizes.insert(added->sizes.begin(), 1);
    added->strides.insert(added->strides.begin(), 0);
  }
  for (std::size_t d = 0; added && d < out->sizes.size(); ++d)
    if (added->sizes[d] == 1 && out->sizes[d] != 1) added->sizes[d] = out->sizes[d], added->strides[d] = 0;
  if (*beta == 0) added.reset();
  return Product::prepare(*std::move(handle), *a, *b, added, *alpha, *beta, *out, why_not);
}

std::string cublaslt_text() {
  const CublasLt* api = cublaslt();
  return api ? fmt::format("{} in {}", version_text(*api), api->path) : std::string();
}

}  // namespace partita::codegen
