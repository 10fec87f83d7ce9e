#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/sym/sym_expr.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace partita {

/// What is known of a tensor before it is computed: the content of an FX annotation, and what annotations leave out.
struct TensorMeta {
  DType dtype = DType::Float32;
  Device device;
  SymList sizes;
  SymList strides;     ///< in elements; row-major if the annotation had none
  SymExpr offset = 0;  ///< storage offset in elements
  bool requires_grad = false;
  bool strides_known = true;  ///< false: the annotation has no strides, as in fx_graph_readable.py
  bool device_known = true;   ///< false: the annotation has no device
  int storage_id = -1;        ///< equal ids share memory; -1: not analysed

  std::size_t dim() const { return sizes.size(); }
  SymExpr numel() const { return product(sizes); }
  static TensorMeta contiguous(DType dtype, SymList sizes, Device device = {});  ///< row-major
};

struct Meta;
/// The result of a node with several results; an entry may be unknown (None outputs).
struct MetaTuple {
  std::vector<Meta> items;
};
/// An annotation that is kept and printed but not interpreted, e.g. TwoTensor(f32[3][1]cpu).
struct OpaqueMeta {
  std::string text;
  bool operator==(const OpaqueMeta&) const = default;
};

/// What is known of a value: nothing, a tensor, a symbolic or plain number, a tuple, or opaque text.
struct Meta {
  std::variant<std::monostate, TensorMeta, SymExpr, MetaTuple, OpaqueMeta> v;

  Meta() = default;
  // Written once: for a variant they are long code, which every file with metas would have again.
  Meta(const Meta&);
  Meta(Meta&&) noexcept;
  Meta& operator=(const Meta&);
  Meta& operator=(Meta&&) noexcept;
  ~Meta();
  Meta(TensorMeta t) : v(std::move(t)) {}
  Meta(SymExpr e) : v(e) {}
  Meta(MetaTuple t) : v(std::move(t)) {}
  Meta(OpaqueMeta t) : v(std::move(t)) {}

  bool known() const { return v.index() != 0; }
  TensorMeta* tensor() { return std::get_if<TensorMeta>(&v); }
  const TensorMeta* tensor() const { return std::get_if<TensorMeta>(&v); }
  const SymExpr* sym() const { return std::get_if<SymExpr>(&v); }
  const MetaTuple* tuple() const { return std::get_if<MetaTuple>(&v); }
};

/// "8, 3*s77"
std::string join(const SymList& list);
/// FX's annotation without quotes: f32[8, 64][64, 1]cpu, Sym(s77); empty for unknown metas and tuples.
std::string annotation(const Meta& meta);
/// Reads what annotation() and PyTorch print. Text that is neither a tensor nor a Sym becomes OpaqueMeta.
Result<Meta> parse_annotation(std::string_view text);
/// Compares metas as PyTorch prints them: dtype, sizes, and, where both are known, strides and device.
bool same_annotation(const Meta& a, const Meta& b);
/// The bytes of all elements, as a symbolic expression. The storage may be larger.
SymExpr byte_size(const TensorMeta& meta);

}  // namespace partita
