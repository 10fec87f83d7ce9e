#include "core/ir/structural_hash.h"

#include <bit>

#include "core/base/hash.h"

namespace partita {
namespace {

class Hasher {
 public:
  explicit Hasher(const Graph& graph) : position_(graph.id_limit(), 0) {}

  void node(const Node& n) {
    position_[n.id()] = ++count_;
    mix(hash64(n.op()->name, static_cast<std::uint64_t>(n.op()->kind)));
    if (n.op()->meaning) text(n.op()->meaning_hash);
    text(n.target);
    mix(n.args().size());
    for (const Arg& a : n.args()) arg(a);
    mix(n.kwargs().size());
    for (const auto& [key, a] : n.kwargs()) {
      text(key);
      arg(a);
    }
    meta(n.meta);
  }
  void mix(std::uint64_t v) { hash_ = hash_combine(hash_, v + 0x9e3779b97f4a7c15ULL); }
  void text(std::string_view s) { mix(hash64(s)); }
  std::uint64_t value() const { return hash_; }

 private:
  void arg(const Arg& a) {
    mix(a.v.index());
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Node*>)
            mix(position_[v->id()]);
          else if constexpr (std::is_same_v<T, double>)
            mix(std::bit_cast<std::uint64_t>(v));
          else if constexpr (std::is_same_v<T, std::complex<double>>) {
            mix(std::bit_cast<std::uint64_t>(v.real()));
            mix(std::bit_cast<std::uint64_t>(v.imag()));
          } else if constexpr (std::is_same_v<T, std::string>)
            text(v);
          else if constexpr (std::is_same_v<T, Device>) {
            mix(static_cast<std::uint64_t>(v.type));
            mix(static_cast<std::uint64_t>(v.index));
          } else if constexpr (std::is_same_v<T, ArgList>) {
            mix(v.items.size() * 2 + v.is_tuple);
            for (const Arg& item : v.items) arg(item);
          } else if constexpr (std::is_same_v<T, ArgSlice>) {
            for (const Arg& item : v.parts) arg(item);
          } else if constexpr (std::is_same_v<T, ArgDict>) {
            mix(v.items.size());
            for (const auto& [key, item] : v.items) {
              text(key);
              arg(item);
            }
          } else if constexpr (std::is_same_v<T, ArgName>)
            text(v.text);
          else if constexpr (!std::is_same_v<T, std::monostate>)
            mix(static_cast<std::uint64_t>(v));
        },
        a.v);
  }

  void list(const SymList& l) {
    mix(l.size());
    for (SymExpr e : l) mix(e.hash());
  }
  void meta(const Meta& m) {
    mix(m.v.index());
    if (const TensorMeta* t = m.tensor()) {
      mix(static_cast<std::uint64_t>(t->dtype));
      list(t->sizes);
      list(t->strides);
    } else if (const SymExpr* e = m.sym()) {
      mix(e->hash());
    } else if (const MetaTuple* tuple = m.tuple()) {
      mix(tuple->items.size());
      for (const Meta& item : tuple->items) meta(item);
    }
  }

  std::vector<std::uint64_t> position_;  // by node id, 1-based order of appearance
  std::uint64_t count_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace

std::uint64_t structural_hash(const Graph& graph) {
  Hasher hasher(graph);
  for (const Node* node : graph) hasher.node(*node);
  for (const auto& [name, child] : graph.children) {
    hasher.text(name);
    hasher.mix(structural_hash(*child));
  }
  return hasher.value();
}

}  // namespace partita
