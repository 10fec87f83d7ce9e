// Wrappers as JSON: the fields of each layer, once for writing and reading.
#include <nlohmann/json.hpp>

#include "core/aot/wrapper.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

void fields(auto& f, SubclassWrapper::Item& i) {
  f("type", i.type), f("attributes", i.attributes);
}
void fields(auto& f, SubclassWrapper& w) {
  f("inputs", w.inputs), f("outputs", w.outputs);
}
void fields(auto& f, DedupeWrapper& w) {
  f("at", w.at);
}
void fields(auto& f, SyntheticBaseWrapper::View& v) {
  f("input", v.input), f("sizes", v.sizes), f("strides", v.strides), f("offset", v.offset);
}
void fields(auto& f, SyntheticBaseWrapper& w) {
  f("at", w.at), f("views", w.views), f("returned", w.returned);
}
void fields(auto& f, DebugAssertWrapper& w) {
  f("requires_grad", w.requires_grad);
}
void fields(auto& f, InputShapes::Shape& s) {
  f("sizes", s.sizes), f("strides", s.strides), f("number", s.number);
}
void fields(auto& f, RuntimeWrapper::Mutated& m) {
  f("input", m.input), f("data", m.data), f("view_offset", m.view_offset), f("view_strides", m.view_strides);
  f("storage", m.storage), f("memory_of", m.memory_of);
}
void fields(auto& f, RuntimeWrapper::Alias& a) {
  f("output", a.output), f("input", a.input), f("is_input", a.is_input), f("view_offset", a.view_offset);
  f("view_strides", a.view_strides);
}
void fields(auto& f, RuntimeWrapper::Shared& s) {
  f("output", s.output), f("result", s.result), f("view_offset", s.view_offset), f("view_strides", s.view_strides);
  f("strides", s.strides);
}
void fields(auto& f, RuntimeWrapper::Part& p) {
  f("output", p.output), f("memory", p.memory), f("view_offset", p.view_offset), f("view_strides", p.view_strides);
}
void fields(auto& f, RuntimeWrapper& w) {
  f("mutated", w.mutated), f("aliases", w.aliases), f("shared", w.shared), f("parts", w.parts);
  f("intermediate_bases", w.intermediate_bases), f("shapes", w.shapes.inputs);
}
void fields(auto& f, AutogradDispatchWrapper& w) {
  f("outputs", w.outputs), f("saved", w.saved), f("saved_symbols", w.saved_symbols), f("tangent_of", w.tangent_of);
  f("detached", w.detached), f("lazy_backward", w.lazy_backward);
}
void fields(auto& f, FakifiedOutWrapper::Output& o) {
  f("output", o.output), f("strides", o.strides);
}
void fields(auto& f, FakifiedOutWrapper& w) {
  f("outputs", w.outputs), f("shapes", w.shapes.inputs);
}
void fields(auto& f, EffectTokensWrapper& w) {
  f("tokens", w.tokens);
}
void fields(auto& f, FunctionalizedRngWrapper& w) {
  f("offset_output", w.offset_output), f("backward_offset_output", w.backward_offset_output);
}

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

struct Writer {
  Json out = Json::object();

  void operator()(const char* key, auto& value) { out[key] = json(value); }
  template <class T>
  static Json json(T& value) {
    using Type = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Type, std::vector<bool>>) {
      return value;
    } else if constexpr (is_list<Type>) {
      Json list = Json::array();
      for (auto& item : value) list.push_back(json(item));
      return list;
    } else if constexpr (is_optional<Type>) {
      return value ? json(*value) : Json();
    } else if constexpr (std::is_same_v<Type, SymExpr>) {
      return value.is_int() ? Json(value.as_int()) : Json(value.str());
    } else if constexpr (std::is_arithmetic_v<Type> || std::is_same_v<Type, std::string>) {
      return value;
    } else {
      Writer inner;
      fields(inner, value);
      return inner.out;
    }
  }
};

/// Throws Json::exception, or a Diagnostic for a bad expression.
struct Reader {
  const Json& in;

  void operator()(const char* key, auto& value) { read(in.at(key), value); }
  template <class T>
  static void read(const Json& json, T& value) {
    if constexpr (std::is_same_v<T, std::vector<bool>>) {
      value = json.get<T>();
    } else if constexpr (is_list<T>) {
      for (const Json& item : json) read(item, value.emplace_back());
    } else if constexpr (is_optional<T>) {
      if (!json.is_null()) read(json, value.emplace());
    } else if constexpr (std::is_same_v<T, SymExpr>) {
      if (json.is_number_integer()) {
        value = json.get<std::int64_t>();
        return;
      }
      value = unwrap(SymExpr::parse(json.get<std::string>()));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      value = json.get<T>();
    } else {
      Reader inner{json};
      fields(inner, value);
    }
  }
};

Diagnostic bad_wrappers(const std::string& what) {
  return input_error("aot.wrappers", "this is no list of wrappers: " + what);
}

/// Reads the layer if it has this name.
template <class W>
bool read_named(const Json& json, Wrappers& into) {
  if (json.at("name") != W::name) return false;
  W w;
  Reader reader{json};
  fields(reader, w);
  into.emplace_back(std::move(w));
  return true;
}

template <class... W>
bool read_any(const Json& json, Wrappers& into, std::type_identity<std::variant<W...>>) {
  return (read_named<W>(json, into) || ...);
}

}  // namespace

Json to_json(const Wrappers& wrappers) {
  Json out = Json::array();
  for (Wrapper w : wrappers) {
    Writer writer;
    writer.out["name"] = name_of(w);
    writer.out["summary"] = summary(w);
    std::visit([&](auto& layer) { fields(writer, layer); }, w);
    out.push_back(std::move(writer.out));
  }
  return out;
}

Result<Wrappers> read_wrappers(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return bad_wrappers("a JSON list is expected");
  const auto read = [&] {
    Wrappers out;
    for (const Json& item : json)
      if (!read_any(item, out, std::type_identity<Wrapper>()))
        throw Raise{input_error("aot.wrappers", "no wrapper is named " + item.at("name").dump())};
    return out;
  };
  try {
    auto wrappers = catch_raised<Wrappers>(read);
    return wrappers ? std::move(wrappers) : bad_wrappers(wrappers.error().line());
  } catch (const Json::exception& e) {
    return bad_wrappers(e.what());
  }
}

}  // namespace partita
