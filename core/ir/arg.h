#pragma once
#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace partita {

class Node;
struct Arg;

struct ArgList {
  std::vector<Arg> items;
  bool is_tuple = false;
  bool operator==(const ArgList&) const;
};
/// slice(start, stop, step); it always has three items.
struct ArgSlice {
  std::vector<Arg> parts;
  bool operator==(const ArgSlice&) const;
};
/// {'key': value}. Dynamo graphs and outputs of joint graphs have it.
struct ArgDict {
  std::vector<std::pair<std::string, Arg>> items;
  bool operator==(const ArgDict&) const;
};
/// A Python name that is kept but not interpreted: torch.float_power_policy, Ellipsis, torch.autograd.Function...
struct ArgName {
  std::string text;
  bool operator==(const ArgName&) const = default;
};

/// An argument of a call, as written. A symbolic size is the node that produces it.
struct Arg {
  std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string, Node*, DType, Device,
               Layout, MemoryFormat, ArgList, ArgSlice, ArgDict, ArgName>
      v;

  Arg() = default;  ///< None
  // Written once: for a variant they are long code, which every file with arguments would have again.
  Arg(const Arg&);
  Arg(Arg&&) noexcept;
  Arg& operator=(const Arg&);
  Arg& operator=(Arg&&) noexcept;
  ~Arg();
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Arg>)
  Arg(T&& value) : v(std::forward<T>(value)) {}
  Arg(int value) : v(std::int64_t{value}) {}
  Arg(const char* value) : v(std::string(value)) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&v);
  }
  Node* node() const {
    auto* n = std::get_if<Node*>(&v);
    return n ? *n : nullptr;
  }
  bool is_none() const { return v.index() == 0; }
  bool operator==(const Arg&) const;  ///< NaN equals NaN

  static Arg list(std::vector<Arg> items) { return ArgList{std::move(items), false}; }
  static Arg tuple(std::vector<Arg> items) { return ArgList{std::move(items), true}; }
};

using Args = std::vector<Arg>;
using Kwargs = std::vector<std::pair<std::string, Arg>>;

/// Calls f on every node in the argument, in order, repeats included.
void for_each_node(const Arg& arg, const std::function<void(Node*)>& f);
/// Returns a copy in which f(n) replaces every node n. f returns an Arg, so that a node may become a constant.
Arg map_nodes(const Arg& arg, const std::function<Arg(Node*)>& f);
Args map_nodes(const Args& args, const std::function<Arg(Node*)>& f);
Kwargs map_nodes(const Kwargs& kwargs, const std::function<Arg(Node*)>& f);

}  // namespace partita
