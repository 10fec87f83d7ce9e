// Apart from evaluate.cpp, so that who runs compiled programs need not link the operators.
#include "core/base/check.h"
#include "core/ops/record/evaluate.h"

namespace partita {

Value to_value(const Arg& literal) {
  struct Visitor {
    Value operator()(std::monostate) const { return {}; }
    Value operator()(bool b) const { return b; }
    Value operator()(std::int64_t i) const { return i; }
    Value operator()(double d) const { return d; }
    Value operator()(std::complex<double> c) const { return c; }
    Value operator()(const std::string& s) const { return s; }
    Value operator()(Node* n) const { CHECK(false, "a literal holds node " + n->name()); }
    Value operator()(DType t) const { return t; }
    Value operator()(const Device& d) const { return d; }
    Value operator()(Layout l) const { return l; }
    Value operator()(MemoryFormat f) const { return f; }
    Value operator()(const ArgList& l) const {
      ValueList out;
      for (const Arg& a : l.items) out.push_back(to_value(a));
      return out;
    }
    Value operator()(const ArgSlice& s) const { return (*this)(ArgList{s.parts, false}); }
    Value operator()(const ArgDict& d) const {
      ValueList out;
      for (const auto& [key, a] : d.items) out.push_back(to_value(a));
      return out;
    }
    Value operator()(const ArgName& n) const { return n.text; }
  };
  return std::visit(Visitor(), literal.v);
}

}  // namespace partita
