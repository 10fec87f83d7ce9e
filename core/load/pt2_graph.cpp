// Reads the graph of a torch.export archive from JSON: metas of all values, then inputs, nodes with their arguments by
// kind, and outputs; sub graphs recursively. Origins are taken from stack traces and module stacks.
#include "core/load/pt2_graph.h"

#include <charconv>
#include <cmath>

#include "core/base/assign.h"
#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/base/python_text.h"
#include "core/ir/extent.h"
#include "core/ir/user_frame.h"

namespace partita::pt2 {
namespace {

constexpr int max_depth = 50;
constexpr std::size_t max_rank = 64;

/// A text of the file for a message of one line.
std::string_view shortened(std::string_view text) {
  return text.substr(0, 100);
}

/// The numbers of torch's serialised enums.
constexpr std::pair<std::int64_t, Layout> layouts[] = {
    {1, Layout::SparseCoo}, {2, Layout::SparseCsr}, {6, Layout::Mkldnn}, {7, Layout::Strided}};
constexpr std::pair<std::int64_t, MemoryFormat> memory_formats[] = {{1, MemoryFormat::Contiguous},
                                                                    {2, MemoryFormat::ChannelsLast},
                                                                    {3, MemoryFormat::ChannelsLast3d},
                                                                    {4, MemoryFormat::Preserve}};

/// Reads a float, or one of the strings that stand for infinities and NaN, which JSON lacks.
Result<double> float_of(Json value) {
  double out;
  if (value.get(out) == simdjson::SUCCESS) return out;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    if (text == "Infinity" || text == "inf") return HUGE_VAL;
    if (text == "-Infinity" || text == "-inf") return -HUGE_VAL;
    if (text == "NaN" || text == "nan") return std::nan("");
  }
  return bad("a float expected");
}

Result<Device> device_of(Json value) {
  TRY(std::string_view type, field_as<std::string_view>(value, "type"));
  auto device = Device::parse(type);
  if (!device) return bad(fmt::format("device '{}'", type));
  if (auto index = field(value, "index")) {
    TRY(std::int64_t i, as<std::int64_t>(*index, "device index"));
    device->index = static_cast<int>(i);
  }
  return *device;
}

/// Reads {as_int}, {as_expr: {expr_str, hint}} or a bare integer.
Result<SymExpr> symbolic(Json json, ShapeEnv* shapes) {
  std::int64_t plain;
  if (json.get(plain) == simdjson::SUCCESS) return SymExpr(plain);
  bool truth;
  if (json.get(truth) == simdjson::SUCCESS) return SymExpr(truth ? 1 : 0);
  TRY(Union u, union_of(json, "a symbolic value"));
  if (u.kind == "as_int") {
    TRY(plain, as<std::int64_t>(u.value, "as_int"));
    return SymExpr(plain);
  }
  if (u.kind == "as_bool") {
    if (u.value.get(truth) != simdjson::SUCCESS) return bad("as_bool is not a boolean");
    return SymExpr(truth ? 1 : 0);
  }
  if (u.kind == "as_float") {
    TRY(double v, float_of(u.value));
    return SymExpr::real(v);
  }
  if (u.kind != "as_expr") return bad(fmt::format("symbolic value of kind '{}'", u.kind));
  TRY(std::string_view text, field_as<std::string_view>(u.value, "expr_str"));
  TRY(SymExpr e, SymExpr::parse(text));
  if (auto hint = field(u.value, "hint"); hint && shapes && e.kind() == SymKind::Symbol) {
    TRY(Union h, union_of(*hint, "hint"));
    if (std::int64_t value; h.value.get(value) == simdjson::SUCCESS && !e.is_float()) shapes->set_hint(e.name(), value);
  }
  return e;
}

Result<SymList> symbolic_list(Json json, std::string_view what, ShapeEnv* shapes) {
  TRY(auto array, as<Array>(json, what));
  if (array.size() > max_rank) return bad(fmt::format("{} of rank {}", what, array.size()));
  SymList out;
  for (Json item : array) TRY_DO(assign(out.emplace_back(), symbolic(item, shapes)));
  return out;
}

Result<Arg> list_of(Json json, auto item_of) {
  TRY(auto array, as<Array>(json, "an argument list"));
  std::vector<Arg> items;
  for (Json item : array) TRY_DO(assign(items.emplace_back(), item_of(item)));
  return Arg::list(std::move(items));
}

/// Takes the innermost frame off the end of a stack trace. nullopt when there is none.
std::optional<StackFrame> take_frame(std::string_view& trace) {
  const std::size_t begin = trace.rfind("File \"");
  const std::size_t quote = begin == std::string_view::npos ? begin : trace.find("\", line ", begin);
  if (quote == std::string_view::npos) return std::nullopt;
  StackFrame frame;
  frame.file = trace.substr(begin + 6, quote - begin - 6);
  std::string_view rest = trace.substr(quote + 8);
  std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
  std::size_t end = std::min(rest.find('\n'), rest.size());
  if (std::size_t in = rest.substr(0, end).find(", in "); in != std::string_view::npos)
    frame.function = rest.substr(in + 5, end - in - 5);
  std::string_view code = rest.substr(std::min(end + 1, rest.size()));
  code = code.substr(0, code.find('\n'));
  code.remove_prefix(std::min(code.find_first_not_of(' '), code.size()));
  while (code.ends_with(' ')) code.remove_suffix(1);
  frame.code = code;
  trace = trace.substr(0, begin);
  return frame;
}

/// The innermost frame of the stack trace, and the innermost one outside torch. A trace of torch's frames alone has no
/// caller.
std::shared_ptr<const Origin> origin_of(Json metadata) {
  Origin origin;
  std::string_view trace, stack;
  if (metadata["stack_trace"].get(trace) == simdjson::SUCCESS) {
    std::optional<StackFrame> frame = take_frame(trace);
    if (frame) static_cast<StackFrame&>(origin) = *frame;
    if (frame && is_of_torch(*frame)) {
      while (frame && is_of_torch(*frame)) frame = take_frame(trace);
      origin.caller = std::move(frame);
    }
  }
  // The text is "key,path,type;key,path,type"; the last path is that of the innermost module. PyTorch's passes write a
  // name of their own where a node belongs to none.
  if (metadata["nn_module_stack"].get(stack) == simdjson::SUCCESS && !stack.starts_with("_empty_nn_module_stack")) {
    std::string_view last = stack.substr(stack.rfind(';') + 1);
    std::size_t first = last.find(','), second = last.rfind(',');
    if (first < second) origin.modules = last.substr(first + 1, second - first - 1);
  }
  return std::make_shared<const Origin>(std::move(origin));
}

class GraphReader {
 public:
  GraphReader(std::shared_ptr<ShapeEnv> shapes, int depth) : shapes_(std::move(shapes)), depth_(depth) {}

  Result<std::unique_ptr<Graph>> read(Json json, const std::string& name,
                                      const std::vector<std::string>& constant_names) {
    if (depth_ > max_depth) return bad("sub graphs nested too deeply");
    auto graph = std::make_unique<Graph>(name);
    graph->shapes = shapes_;
    graph_ = graph.get();
    TRY_DO(read_metas(json));
    TRY(auto inputs, field_as<Array>(json, "inputs"));
    std::size_t place = 0;
    for (Json input : inputs) {
      TRY_DO(read_input(input, place < constant_names.size() ? constant_names[place] : ""));
      ++place;
    }
    TRY(auto nodes, field_as<Array>(json, "nodes"));
    for (Json node : nodes) {
      if (graph_->size() > config().graph_limit) return bad(too_many_nodes());
      if (Status s = read_node(node); !s) {
        Diagnostic error = s.error();
        std::string_view target;
        if (error.where.node.empty() && node["target"].get(target) == simdjson::SUCCESS) error.where.node = target;
        return error;
      }
    }
    TRY(auto outputs, field_as<Array>(json, "outputs"));
    std::vector<Arg> results;
    for (Json output : outputs) TRY_DO(assign(results.emplace_back(), argument(output)));
    const bool single = flag_in(json, "is_single_tensor_return");
    graph->set_output(single && results.size() == 1 ? results[0] : Arg::tuple(std::move(results)));
    return graph;
  }

 private:
  Status read_metas(Json json) {
    if (auto tensors = field(json, "tensor_values")) {
      TRY(auto object, as<simdjson::dom::object>(*tensors, "tensor_values"));
      for (auto entry : object) {
        auto meta = read_tensor_meta(entry.value, shapes_.get());
        if (meta)
          metas_.emplace(entry.key, *std::move(meta));
        else if (meta.error().code == unknown_dtype)
          metas_.emplace(entry.key, OpaqueMeta{"a tensor of an unknown dtype"});
        else
          return std::move(meta).error();
      }
    }
    for (const char* key : {"sym_int_values", "sym_bool_values", "sym_float_values"}) {
      auto values = field(json, key);
      if (!values) continue;
      TRY(auto object, as<simdjson::dom::object>(*values, key));
      for (auto entry : object) {
        TRY(SymExpr e, symbolic(entry.value, shapes_.get()));
        metas_.emplace(entry.key, e);
      }
    }
    return {};
  }

  Meta meta_of(std::string_view name) const {
    auto it = metas_.find(name);
    return it == metas_.end() ? Meta() : it->second;
  }

  void define(std::string_view name, Node* node) { nodes_[std::string(name)] = node; }

  Result<Arg> node_named(std::string_view name) const {
    auto it = nodes_.find(std::string(name));
    if (it == nodes_.end()) return bad(fmt::format("value '{}' is used but not defined", shortened(name)));
    return Arg(it->second);
  }

  Status read_input(Json json, const std::string& constant_name) {
    TRY(Union u, union_of(json, "a graph input"));
    std::string_view name;
    for (const char* key : {"name", "as_name"})
      if (u.value.is_object() && u.value[key].get(name) == simdjson::SUCCESS) break;
    if (name.empty()) name = constant_name.empty() ? std::string_view("arg") : std::string_view(constant_name);
    Node* node = graph_->placeholder(name, meta_of(name));
    define(name, node);
    return {};
  }

  /// Reads a symbolic scalar: a node by its name, or a number.
  Result<Arg> scalar(Json json) {
    TRY(Union u, union_of(json, "a symbolic argument"));
    if (u.kind == "as_name") {
      TRY(std::string_view name, as<std::string_view>(u.value, "as_name"));
      return node_named(name);
    }
    return read_literal(u);
  }

  Result<Arg> optional_tensor(Json json) {
    TRY(Union u, union_of(json, "an optional tensor"));
    if (u.kind == "as_none") return Arg();
    return tensor(u.value);
  }

  Result<Arg> tensor(Json json) {
    TRY(std::string_view name, field_as<std::string_view>(json, "name"));
    return node_named(name);
  }

  Result<Arg> argument(Json json) {
    TRY(Union u, union_of(json, "an argument"));
    if (u.kind == "as_tensor" || u.kind == "as_custom_obj") return tensor(u.value);
    if (u.kind == "as_tensors") return list_of(u.value, [&](Json item) { return tensor(item); });
    if (u.kind == "as_nested_tensors")
      return list_of(u.value, [&](Json row) { return list_of(row, [&](Json item) { return tensor(item); }); });
    if (u.kind == "as_optional_tensor") return optional_tensor(u.value);
    if (u.kind == "as_optional_tensors") return list_of(u.value, [&](Json item) { return optional_tensor(item); });
    if (u.kind == "as_sym_int" || u.kind == "as_sym_bool" || u.kind == "as_sym_float") return scalar(u.value);
    if (u.kind == "as_sym_ints" || u.kind == "as_sym_bools" || u.kind == "as_sym_floats")
      return list_of(u.value, [&](Json item) { return scalar(item); });
    if (u.kind == "as_graph") return sub_graph(u.value);
    if (u.kind == "as_string_to_argument") {
      ArgDict dict;
      TRY(auto object, as<simdjson::dom::object>(u.value, "a dict argument"));
      for (auto entry : object) {
        TRY(Arg a, argument(entry.value));
        dict.items.emplace_back(entry.key, std::move(a));
      }
      return Arg(std::move(dict));
    }
    return read_literal(u);
  }

  Result<Arg> sub_graph(Json json) {
    TRY(std::string_view name, field_as<std::string_view>(json, "name"));
    TRY(Json body, need(json, "graph"));
    if (!is_identifier(name)) return bad(fmt::format("sub graph '{}'", shortened(name)));
    std::string key(name);
    if (!graph_->child(key)) {
      TRY(auto child, GraphReader(shapes_, depth_ + 1).read(body, key, {}));
      graph_->children.emplace_back(key, std::move(child));
    }
    Node* node = graph_->create(Op::get_attr(), {}, {}, key);
    node->target = key;
    node->origin = origin_;
    return Arg(node);
  }

  static Result<const Op*> op_of(std::string_view target) {
    if (!is_dotted_name(target)) return bad(fmt::format("target '{}' is not a dotted name", shortened(target)));
    if (target.starts_with("torch.ops.")) return Op::torch(target.substr(10));
    return Op::get(OpKind::Function, target);
  }

  Status read_node(Json json) {
    TRY(std::string_view target, field_as<std::string_view>(json, "target"));
    // The origin is needed first, because reading the arguments may make nodes.
    auto metadata = field(json, "metadata");
    origin_ = metadata ? origin_of(*metadata) : nullptr;
    TRY(auto inputs, field_as<Array>(json, "inputs"));
    Args args;
    Kwargs kwargs;
    for (Json input : inputs) {
      TRY(std::string_view name, field_as<std::string_view>(input, "name"));
      TRY(Json value, need(input, "arg"));
      TRY(Arg a, argument(value));
      std::int64_t kind = 1;
      if (auto k = field(input, "kind")) TRY_DO(assign(kind, as<std::int64_t>(*k, "kind")));
      if (kind == 2 && !is_identifier(name)) return bad(fmt::format("keyword '{}'", shortened(name)));
      if (kind == 2)
        kwargs.emplace_back(name, std::move(a));
      else
        args.push_back(std::move(a));
    }
    TRY(auto outputs, field_as<Array>(json, "outputs"));
    std::vector<Union> results;
    for (Json output : outputs) TRY_DO(assign(results.emplace_back(), union_of(output, "a node output")));
    // A single result of a higher-order operator is a tuple unless the archive says otherwise.
    const bool tuple_of_one = results.size() == 1 && target.starts_with("torch.ops.higher_order.") &&
                              !flag_in(json, "is_hop_single_tensor_return");
    bool named = results.size() == 1 && !tuple_of_one && results[0].value.is_object();
    std::string_view name;
    if (json["name"].get(name) != simdjson::SUCCESS) name = {};
    if (named) TRY_DO(assign(name, result_name(results[0])));
    TRY(const Op* op, op_of(target));
    Node* node = graph_->create(op, std::move(args), std::move(kwargs), name);
    node->origin = origin_;
    if (named) {
      node->meta = meta_of(name);
      define(name, node);
      return {};
    }
    // getitem reads the items of a list result (split) and of several results alike.
    if (results.size() == 1 && results[0].value.is_array()) return add_items(node, results[0].value);
    for (std::size_t i = 0; i < results.size(); ++i) TRY_DO(add_item(node, static_cast<std::int64_t>(i), results[i]));
    return {};
  }

  static Result<std::string_view> result_name(const Union& u) {
    return field_as<std::string_view>(u.value, u.kind.starts_with("as_sym") ? "as_name" : "name");
  }

  Status add_items(Node* tuple, Json items) {
    TRY(auto list, as<Array>(items, "a list output"));
    std::int64_t index = 0;
    for (Json item : list) TRY_DO(add_item(tuple, index++, Union{"as_tensor", item}));
    return {};
  }

  Status add_item(Node* tuple, std::int64_t index, const Union& u) {
    if (u.kind == "as_none") return {};
    if (u.value.is_array()) {
      Node* inner = graph_->create(Op::getitem(), {Arg(tuple), Arg(index)});
      inner->origin = tuple->origin;
      return add_items(inner, u.value);
    }
    TRY(std::string_view name, result_name(u));
    // The exporter names unused results NODE_unused_N; the graph has no node for them.
    if (name.find("_unused_") != std::string_view::npos) return {};
    Node* node = graph_->create(Op::getitem(), {Arg(tuple), Arg(index)}, {}, name);
    node->origin = tuple->origin;
    node->meta = meta_of(name);
    define(name, node);
    return {};
  }

  std::shared_ptr<ShapeEnv> shapes_;
  int depth_;
  Graph* graph_ = nullptr;
  std::shared_ptr<const Origin> origin_;  ///< of the node being read
  std::unordered_map<std::string_view, Meta> metas_;
  std::unordered_map<std::string, Node*> nodes_;
};

}  // namespace

Result<TensorMeta> read_tensor_meta(Json json, ShapeEnv* shapes) {
  TensorMeta t;
  TRY(Json code, need(json, "dtype"));
  TRY(std::int64_t dtype, as<std::int64_t>(code, "dtype"));
  auto known = dtype_from_pt2(static_cast<int>(dtype));
  if (!known) return unsupported(std::string(unknown_dtype), fmt::format("dtype code {} is unknown here", dtype));
  t.dtype = *known;
  TRY(Json sizes, need(json, "sizes"));
  TRY(t.sizes, symbolic_list(sizes, "sizes", shapes));
  TRY(Json strides, need(json, "strides"));
  TRY(t.strides, symbolic_list(strides, "strides", shapes));
  if (t.sizes.size() != t.strides.size())
    return bad(fmt::format("{} sizes but {} strides", t.sizes.size(), t.strides.size()));
  if (auto offset = field(json, "storage_offset")) TRY_DO(assign(t.offset, symbolic(*offset, shapes)));
  if (auto device = field(json, "device")) TRY_DO(assign(t.device, device_of(*device)));
  t.requires_grad = flag_in(json, "requires_grad");
  TRY_DO(check_extent(t));
  return t;
}

Result<Arg> read_literal(const Union& u) {
  auto integer = [](Json j) -> Result<Arg> {
    TRY(std::int64_t v, as<std::int64_t>(j, "as_int"));
    return Arg(v);
  };
  auto real = [](Json j) -> Result<Arg> {
    TRY(double v, float_of(j));
    return Arg(v);
  };
  auto boolean = [](Json j) -> Result<Arg> {
    bool v;
    if (j.get(v) != simdjson::SUCCESS) return bad("a boolean expected");
    return Arg(v);
  };
  auto string = [](Json j) -> Result<Arg> {
    TRY(std::string_view v, as<std::string_view>(j, "as_string"));
    return Arg(std::string(v));
  };
  if (u.kind == "as_none") return Arg();
  if (u.kind == "as_int") return integer(u.value);
  if (u.kind == "as_ints") return list_of(u.value, integer);
  if (u.kind == "as_int_lists") return list_of(u.value, [&](Json row) { return list_of(row, integer); });
  if (u.kind == "as_float") return real(u.value);
  if (u.kind == "as_floats") return list_of(u.value, real);
  if (u.kind == "as_bool") return boolean(u.value);
  if (u.kind == "as_bools") return list_of(u.value, boolean);
  if (u.kind == "as_string") return string(u.value);
  if (u.kind == "as_strings") return list_of(u.value, string);
  if (u.kind == "as_device") {
    TRY(Device d, device_of(u.value));
    return Arg(d);
  }
  if (u.kind == "as_operator") {
    TRY(std::string_view name, as<std::string_view>(u.value, "as_operator"));
    if (!is_dotted_name(name)) return bad(fmt::format("operator '{}' is not a dotted name", shortened(name)));
    return Arg(ArgName{std::string(name)});
  }
  if (u.kind == "as_complex") {
    TRY(Json real_part, need(u.value, "real"));
    TRY(Json imaginary_part, need(u.value, "imag"));
    TRY(double a, float_of(real_part));
    TRY(double b, float_of(imaginary_part));
    return Arg(std::complex<double>(a, b));
  }
  if (u.kind == "as_scalar_type" || u.kind == "as_layout" || u.kind == "as_memory_format") {
    TRY(std::int64_t code, as<std::int64_t>(u.value, u.kind));
    if (auto t = dtype_from_pt2(static_cast<int>(code)); t && u.kind == "as_scalar_type") return Arg(*t);
    for (const auto& [number, layout] : layouts)
      if (number == code && u.kind == "as_layout") return Arg(layout);
    for (const auto& [number, format] : memory_formats)
      if (number == code && u.kind == "as_memory_format") return Arg(format);
    // One call with a dtype that is unknown here does not keep the others from being read.
    if (u.kind == "as_scalar_type") return Arg(ArgName{fmt::format("torch.dtype_{}", code)});
    return unsupported("load.pt2.argument", fmt::format("an archive with {} {}", u.kind, code));
  }
  return unsupported("load.pt2.argument", fmt::format("an archive with an argument of kind '{}'", u.kind));
}

Result<std::unique_ptr<Graph>> read_graph(Json json, const std::string& name, std::shared_ptr<ShapeEnv> shapes,
                                          const std::vector<std::string>& constant_names, int depth) {
  return GraphReader(std::move(shapes), depth).read(json, name, constant_names);
}

}  // namespace partita::pt2
