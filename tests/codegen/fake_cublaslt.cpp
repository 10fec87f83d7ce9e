// cuBLASLt's library without a device: it multiplies in the memory that the fake driver gives out, as NVIDIA's
// documentation says of each attribute. For test_cuda_driver.cpp.
#include <cstdint>
#include <cstring>
#include <map>

namespace {

struct Layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t ld;
  std::int32_t batches = 1;
  std::int64_t offset = 0;
};
struct Product {
  int compute, scale;
  std::int32_t transposed[2] = {0, 0};
  std::uint32_t epilogue = 1;
  const void* bias = nullptr;
};
struct Preference {
  std::map<int, std::uint64_t> values;
};
struct Found {
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

int refuses = 0, fails = 0;
constexpr int invalid_value = 7, not_supported = 15;
constexpr std::uint64_t mark = 0x5bd1e995;  // of an algorithm that the heuristic gave

template <class T>
T get(const void* value) {
  T out;
  std::memcpy(&out, value, sizeof out);
  return out;
}
double element(const void* p, int type, std::int64_t i) {
  return type == 1 ? static_cast<const double*>(p)[i] : static_cast<const float*>(p)[i];
}
/// Row and column of the matrix, which may be shown transposed.
double element(const void* p, const Layout& l, bool transposed, std::int64_t batch, std::int64_t r, std::int64_t c) {
  return element(p, l.type, batch * l.offset + (transposed ? c + r * l.ld : r + c * l.ld));
}

}  // namespace

extern "C" {

void fake_refuse(int on) {
  refuses = on;
}
void fake_matmul_fails(int status) {
  fails = status;
}

std::size_t cublasLtGetVersion() {
  return 130002;
}
int cublasLtCreate(void** handle) {
  *handle = &refuses;
  return 0;
}
int cublasLtDestroy(void*) {
  return 0;
}
int cublasLtMatmulDescCreate(void** product, int compute, int scale) {
  *product = new Product{compute, scale};
  return 0;
}
int cublasLtMatmulDescDestroy(void* product) {
  delete static_cast<Product*>(product);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* value, std::size_t bytes) {
  Product& p = *static_cast<Product*>(product);
  if ((attribute == 3 || attribute == 4) && bytes == 4)
    p.transposed[attribute - 3] = get<std::int32_t>(value);
  else if (attribute == 7 && bytes == 4)
    p.epilogue = get<std::uint32_t>(value);
  else if (attribute == 8 && bytes == 8)
    p.bias = get<const void*>(value);
  else
    return invalid_value;
  return 0;
}
int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
  if (ld < static_cast<std::int64_t>(rows)) return invalid_value;
  *layout = new Layout{type, rows, columns, ld};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, std::size_t bytes) {
  Layout& l = *static_cast<Layout*>(layout);
  if (attribute == 5 && bytes == 4)
    l.batches = get<std::int32_t>(value);
  else if (attribute == 6 && bytes == 8)
    l.offset = get<std::int64_t>(value);
  else
    return invalid_value;
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, std::size_t bytes) {
  static_cast<Preference*>(preference)->values[attribute] =
      bytes == 8 ? get<std::uint64_t>(value) : get<std::uint32_t>(value);
  return attribute == 1 ? (bytes == 8 ? 0 : invalid_value) : bytes == 4 ? 0 : invalid_value;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void* c, void* d, void* preference, int most,
                                   Found* found, int* count) {
  const auto& p = *static_cast<Product*>(product);
  const auto *l = static_cast<Layout*>(a), *r = static_cast<Layout*>(b), *out = static_cast<Layout*>(d);
  const std::uint64_t m = p.transposed[0] ? l->columns : l->rows, k = p.transposed[0] ? l->rows : l->columns,
                      k2 = p.transposed[1] ? r->columns : r->rows, n = p.transposed[1] ? r->rows : r->columns;
  const auto& wants = static_cast<Preference*>(preference)->values;
  const auto* third = static_cast<Layout*>(c);
  *count = 0;
  // Sums of parts in the compute type only; what is aligned to 4 bytes has a kernel.
  if (m != out->rows || n != out->columns || k != k2 || third->rows != m || third->columns != n || most < 1 ||
      !wants.contains(1) || wants.at(3) != 2 || l->batches != out->batches || r->batches != out->batches)
    return invalid_value;
  if (p.epilogue == 4 && !p.bias) return invalid_value;
  if (refuses) return not_supported;
  for (int i = 5; i <= 8; ++i)
    if (!wants.contains(i) || wants.at(i) % 4 != 0) return not_supported;
  *found = {};
  found->algorithm[0] = mark;
  found->workspace_bytes = 1024;
  *count = 1;
  return 0;
}
int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                   void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const std::uint64_t* algorithm, void* workspace, std::size_t, void* stream) {
  if (fails) return fails;
  if (algorithm[0] != mark || !workspace || !stream) return invalid_value;
  const auto& p = *static_cast<Product*>(product);
  const auto &la = *static_cast<Layout*>(a_layout), &lb = *static_cast<Layout*>(b_layout),
             &lc = *static_cast<Layout*>(c_layout), &ld = *static_cast<Layout*>(d_layout);
  const double scale = element(alpha, p.scale, 0), third = element(beta, p.scale, 0);
  const auto k = static_cast<std::int64_t>(p.transposed[0] ? la.rows : la.columns);
  for (std::int64_t batch = 0; batch < ld.batches; ++batch)
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(ld.rows); ++row)
      for (std::int64_t column = 0; column < static_cast<std::int64_t>(ld.columns); ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i)
          sum += element(a, la, p.transposed[0], batch, row, i) * element(b, lb, p.transposed[1], batch, i, column);
        sum *= scale;
        if (third != 0) sum += third * element(c, lc, false, batch, row, column);
        if (p.epilogue == 4) sum += element(p.bias, ld.type, row);
        const std::int64_t at = batch * ld.offset + row + column * ld.ld;
        if (ld.type == 1)
          static_cast<double*>(d)[at] = sum;
        else
          static_cast<float*>(d)[at] = static_cast<float>(sum);
      }
  return 0;
}

}  // extern "C"
