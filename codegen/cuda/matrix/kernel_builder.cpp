// Expressions and statements of kernels on the views of a call, and what its epilogue makes of an element.
#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"
#include "codegen/cuda/matrix/contraction.h"
#include "core/schedule/instantiate.h"

namespace partita::codegen {

using schedule::PlanView;

std::string_view sum_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return "float";
    case DType::Float64:
      return "double";
    case DType::Int8:
    case DType::UInt8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return "unsigned long long";  // wraps, and its low bits are those of narrower sums
    default:
      return {};
  }
}

MatrixKernelBuilder::MatrixKernelBuilder(const ExternContext& context, MatrixNames names)
    : context_(context), names_(std::move(names)) {
  out_.shape.name = context.call.op->name;
  out_.shape.origins = {context.call.origin};
}

std::string MatrixKernelBuilder::pointer(const PlanView& view, bool written) {
  auto at = static_cast<std::size_t>(std::ranges::find(out_.buffers, view.buffer) - out_.buffers.begin());
  if (at == out_.buffers.size()) {
    out_.buffers.push_back(view.buffer);
    const std::optional<std::int64_t> elements = context_.elements(view.buffer);
    large_ |= !elements || *elements > std::numeric_limits<std::int32_t>::max() / 2;
    out_.shape.buffers.push_back(
        {fmt::format("p{}", at), view.dtype, SymExpr(elements.value_or(0)), loops::Buffer::Role::Input});
  }
  loops::Buffer& buffer = out_.shape.buffers[at];
  if (written) buffer.role = loops::Buffer::Role::Output;
  mixed_ |= buffer.dtype != view.dtype;
  return buffer.name;
}

std::optional<PlanView> tensor_view(const ExternContext& context, std::size_t i) {
  const auto* view = std::get_if<PlanView>(&context.arg(i));
  return view && view->buffer >= 0 ? std::optional(*view) : std::nullopt;
}

std::string MatrixKernelBuilder::text(SymExpr e) {
  if (e.is_int()) return std::to_string(e.as_int());
  const auto call = [&](const char* function) {
    std::string out = text(e.args()[0]);
    for (std::size_t i = 1; i < e.args().size(); ++i)
      out = fmt::format("{}<long long>({}, {})", function, out, text(e.args()[i]));
    return out;
  };
  const auto chain = [&](const char* op) {
    std::string out;
    for (const SymExpr a : e.args()) out += (out.empty() ? "(" : op) + text(a);
    return out + ")";
  };
  switch (e.kind()) {
    case SymKind::Symbol:
      if (std::ranges::find(names_.symbols, e.name()) == names_.symbols.end()) break;
      return "n_" + identifier(e.name());
    case SymKind::Add:
      return chain(" + ");
    case SymKind::Mul:
      return chain(" * ");
    case SymKind::FloorDiv:
      return call("floor_quotient");
    case SymKind::Mod:
      return call("floor_rest");
    case SymKind::Min:
      return call("Min");
    case SymKind::Max:  // a stride of a size that may be 0
      return call("Max");
    case SymKind::Pow:
      if (const SymExpr times = e.args()[1]; times.is_int() && times.as_int() > 0) {
        std::string out = "(" + text(e.args()[0]);
        for (std::int64_t i = 1; i < times.as_int(); ++i) out += " * " + text(e.args()[0]);
        return out + ")";
      }
      break;
    default:
      break;
  }
  unknown_ = true;
  return "0";
}

std::int64_t MatrixKernelBuilder::hint(SymExpr e) const {
  return schedule::instance_value(e, names_.hints).value_or(1);
}

/// Where an element lies in the view's buffer.
std::string MatrixKernelBuilder::place(const PlanView& view, const std::vector<std::string>& indices) {
  std::string at;
  if (!view.offset.is(0)) at = text(view.offset);
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (view.strides[d].is(0) || view.sizes[d].is(1)) continue;
    if (!at.empty()) at += " + ";
    at += view.strides[d].is(1) ? indices[d] : fmt::format("{} * {}", indices[d], text(view.strides[d]));
  }
  return at.empty() ? "0" : at;
}

std::string MatrixKernelBuilder::element(const PlanView& view, const std::vector<std::string>& indices, bool written) {
  return fmt::format("{}[{}]", pointer(view, written), place(view, indices));
}

std::string MatrixKernelBuilder::number(const PlanView& view, const std::vector<std::string>& indices) {
  const std::string value = element(view, indices);
  if (view.dtype == DType::Float16 || view.dtype == DType::BFloat16) return fmt::format("to_float({})", value);
  return is_floating(view.dtype) ? value : fmt::format("static_cast<unsigned long long>({})", value);
}

std::string MatrixKernelBuilder::factor(MatrixUnit unit, const PlanView& view,
                                        const std::vector<std::string>& indices) {
  return fmt::format("    return {};\n", unit == MatrixUnit::Tensor ? element(view, indices) : number(view, indices));
}

Factor MatrixKernelBuilder::factor_of(MatrixUnit unit, const PlanView& view, const std::vector<std::string>& indices,
                                      bool along_k, std::size_t along) {
  Factor f{factor(unit, view, indices), along_k};
  // Packs have the dtype that the unit takes, and begin at multiples of 16 bytes.
  const bool as_it_is = unit == MatrixUnit::Tensor || view.dtype == DType::Float32 || view.dtype == DType::Float64;
  const auto most = static_cast<std::int64_t>(16 / itemsize(view.dtype));
  bool aligned = as_it_is && view.strides[along].is(1) && sym_mod(view.offset, most).is(0);
  for (std::size_t d = 0; d < view.sizes.size(); ++d)
    aligned = aligned && (d == along || view.sizes[d].is(1) || sym_mod(view.strides[d], most).is(0));
  if (!aligned) return f;
  f.address = fmt::format("{} + {}", pointer(view), place(view, indices));
  f.pack = static_cast<int>(most);
  return f;
}

/// The value that the call's epilogue makes of `stored`, an element of its result, and the statements for it; nullopt
/// if it needs what these kernels do not have.
std::optional<std::string> MatrixKernelBuilder::worked(const std::vector<std::string>& indices,
                                                       const std::string& stored, std::string& value) {
  const loops::ScalarBuilder& body = *context_.call.epilogue;
  std::vector<Expression> made(body.nodes().size());
  std::set<std::string> taken;
  std::string text;
  int source = -1;  // of the value that is written: an index into epilogue_origins
  const auto named = [&](const std::string& base, DType dtype, const std::string& what) {
    std::string name = base;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    const std::string line = fmt::format("    const {} {} = {};", cuda_type(dtype), name, what);
    sources_.emplace(line, source + 1);
    text += line + "\n";
    return Expression{name};
  };
  for (std::size_t id = 0; id < made.size(); ++id) {
    const loops::ScalarNode& n = body.nodes()[id];
    const auto operand = [&](int i) { return made[static_cast<std::size_t>(n.args[i].id)]; };
    source = body.sources()[id];
    const std::string origin =
        source < 0 ? context_.call.origin : context_.call.epilogue_origins[static_cast<std::size_t>(source)];
    std::string word(loops::name(n.op));
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::string name = fmt::format("v_{}_{}", identifier(origin), word);
    if (n.op == loops::ScalarOp::Const) {
      made[id] = cuda_constant(n.dtype, n.real, n.integer);
    } else if (n.op == loops::ScalarOp::Input && n.slot == 0) {
      source = -1;
      made[id] = named("v_" + identifier(context_.call.origin), n.dtype, stored);
    } else if (n.op == loops::ScalarOp::Input) {
      const PlanView& view = context_.call.epilogue_inputs[static_cast<std::size_t>(n.slot) - 1];
      made[id] = named("v_more", n.dtype, element(view, indices) + (n.dtype == DType::Bool ? " != 0" : ""));
    } else if (n.op == loops::ScalarOp::Where) {
      made[id] = named(name, n.dtype,
                       fmt::format("{} ? {} : {}", operand(0).as(Expression::Or), operand(1).as(Expression::Or),
                                   operand(2).as(Expression::Conditional)));
    } else if (n.op == loops::ScalarOp::Cast) {
      made[id] = named(name, n.dtype, cuda_cast(operand(0), body.dtype(n.args[0]), n.dtype).text);
    } else if (n.op == loops::ScalarOp::Bitcast) {
      made[id] = named(name, n.dtype, fmt::format("bitcast<{}>({})", cuda_type(n.dtype), operand(0).text));
    } else {
      // An integer division reports a divisor of 0, for which these kernels have no place.
      const bool divides = n.op == loops::ScalarOp::Div || n.op == loops::ScalarOp::FloorDiv ||
                           n.op == loops::ScalarOp::Fmod || n.op == loops::ScalarOp::Remainder;
      if (divides && !is_floating(n.dtype)) return std::nullopt;
      std::vector<Expression> operands;
      for (int i = 0; i < loops::arity(n.op); ++i) operands.push_back(operand(i));
      made[id] = named(name, n.dtype, cuda_operation(n.op, body.dtype(n.args[0]), operands).text);
    }
  }
  value = made[static_cast<std::size_t>(context_.call.epilogue_value.id)].text;
  return text;
}

std::string MatrixKernelBuilder::stored(const PlanView& view, const std::string& value) {
  if (view.dtype == DType::Float16) return fmt::format("to_half({})", value);
  if (view.dtype == DType::BFloat16) return fmt::format("to_bfloat16({})", value);
  if (view.dtype == DType::Bool) return fmt::format("{} != 0", value);
  if (is_complex(view.dtype))
    return fmt::format("to_complex<{}>({})", view.dtype == DType::Complex64 ? "float" : "double", value);
  return fmt::format("static_cast<{}>({})", cuda_memory_type(view.dtype), value);
}

std::string MatrixKernelBuilder::store(const PlanView& view, const std::vector<std::string>& indices,
                                       const std::string& value) {
  std::string converted = stored(view, value);
  std::string text;
  if (context_.call.epilogue) {
    std::string last;
    if (const auto work = worked(indices, converted, last)) {
      out_.does_work = true;
      text = *work;
      converted = last;
    }
  }
  return text + fmt::format("    {} = {};\n", element(view, indices, true), converted);
}

std::string MatrixKernelBuilder::workspace(DType dtype, SymExpr elements) {
  out_.kernel.workspace.push_back({dtype, elements});
  return fmt::format("w{}", out_.kernel.workspace.size() - 1);
}

std::optional<MatrixKernel> MatrixKernelBuilder::build(std::string& why_not) {
  for (std::size_t i = 0; i < contractions_.size(); ++i)
    if (const Contraction& c = contractions_[i]; !c.groups.is(0) && !c.m.is(0) && !c.n.is(0)) emit(c, i);
  if (mixed_) {
    why_not = "memory that is read as several dtypes";
    return std::nullopt;
  }
  if (unknown_) {
    why_not = "sizes of a form that these kernels do not compute";
    return std::nullopt;
  }
  std::string parameters;
  for (const loops::Buffer& b : out_.shape.buffers)
    parameters += fmt::format("{}{}* __restrict__ {}, ", b.role == loops::Buffer::Role::Input ? "const " : "",
                              cuda_memory_type(b.dtype), b.name);
  for (std::size_t i = 0; i < out_.kernel.workspace.size(); ++i) {
    const DType dtype = out_.kernel.workspace[i].dtype;
    parameters += fmt::format("{}* __restrict__ w{}, ", cuda_memory_type(dtype), i);
  }
  for (const std::string& name : names_.symbols) parameters += fmt::format("long long n_{}, ", identifier(name));
  parameters += "KernelFault*";
  if (out_.does_work)
    for (const std::string& origin : context_.call.epilogue_origins) out_.shape.origins.push_back(origin);
  for (Function& f : functions_) {
    for (const auto& [word, value] :
         {std::pair<std::string_view, std::string>{"{parameters}", parameters}, {"{index}", std::string(index_type())}})
      for (auto at = f.text.find(word); at != f.text.npos; at = f.text.find(word, at))
        f.text.replace(at, word.size(), value);
    if (f.blocks.is_int() && f.blocks.as_int() > std::numeric_limits<std::int32_t>::max()) {
      why_not = "more blocks than a grid has";
      return std::nullopt;
    }
    out_.kernel.text += f.text;
    out_.operations += f.operations;
    out_.kernel.functions.push_back({names_.symbol + f.suffix, f.blocks, f.threads, f.shared_bytes, f.cooperates});
  }
  for (std::string_view rest = out_.kernel.text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const auto known = sources_.find(std::string(rest.substr(0, end)));
    out_.kernel.lines.push_back({known == sources_.end() ? 0 : known->second});
    rest.remove_prefix(end + 1);
  }
  return std::move(out_);
}

}  // namespace partita::codegen
