#pragma once
// Metas in archives (core/base/archive.h). Writers raise an error for what has no such form.
#include "core/ir/meta.h"
#include "core/sym/shape_env.h"
#include "core/tensor/archive_types.h"

namespace partita {

template <class A>
void fields(A& a, SymExpr& e) {
  enum Form : std::uint8_t { Number, Real, Text, count };
  Form form = e.is_int() ? Number : e.kind() == SymKind::Float ? Real : Text;
  a.choice(form, count);
  if (form == Number) {
    std::int64_t n = e.is_int() ? e.as_int() : 0;
    a(n);
    if constexpr (A::reads) e = n;
  } else if (form == Real) {
    double d = A::reads ? 0 : e.as_float();
    a(d);
    if constexpr (A::reads) e = SymExpr::real(d);
  } else {
    std::string text = A::reads ? std::string() : e.str();
    a(text);
    const Result<SymExpr> parsed = SymExpr::parse(text);
    if constexpr (A::reads) {
      if (parsed)
        e = *parsed;
      else
        a.fail();
    } else if (!parsed || *parsed != e) {
      throw Raise{unsupported("store.expression", "the expression " + text + " cannot be written")};
    }
  }
}

void fields(auto& a, TensorMeta& t) {
  a(t.dtype, t.device, t.sizes, t.strides, t.offset, t.requires_grad, t.strides_known, t.device_known, t.storage_id);
}

void fields(auto& a, OpaqueMeta& m) {
  a(m.text);
}
void fields(auto& a, MetaTuple& t) {
  a(t.items);
}
void fields(auto& a, Meta& m) {
  variant(a, m.v);
}

void fields(auto& a, SymRange& r) {
  a(r.low, r.high);
}
void fields(auto& a, Guard& g) {
  a(g.condition, g.reason);
}

}  // namespace partita
