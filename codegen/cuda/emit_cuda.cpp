// Writes a kernel as CUDA functions, one for each part between barriers: a thread for each iteration, or a block or
// warp for each row. Chooses arguments, index type and homes of scratch; the other emit_*.cpp write the bodies.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/emit_text.h"
#include "codegen/cuda/matrix/matrix.h"
#include "core/base/check.h"
#include "core/base/config.h"

namespace partita::codegen {

using loops::Buffer;
using loops::Loop;
using loops::Mapping;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

namespace {

constexpr int loop_threads = 256;
constexpr int warps_of_block = 4;                // where each is a group
constexpr std::int64_t local_bytes = 1024;       // of an array that one thread has
constexpr std::int64_t shared_limit = 48 << 10;  // that any GPU has without asking
constexpr std::int64_t scratch_blocks = 256;     // of loops whose threads have scratch in global memory
constexpr std::size_t line_length = 120;

/// A buffer's name without the number that core/schedule puts before it: "b0_relu" -> "relu".
std::string plain_name(const std::string& name) {
  std::size_t i = 1;
  while (i < name.size() && std::isdigit(static_cast<unsigned char>(name[i]))) ++i;
  const bool numbered = i > 1 && i + 1 < name.size() && name[i] == '_' && (name[0] == 'b' || name[0] == 's');
  return identifier(numbered ? std::string_view(name).substr(i + 1) : std::string_view(name));
}

int whole_warps(std::int64_t threads, int most) {
  return static_cast<int>(std::clamp<std::int64_t>((threads + warp - 1) / warp * warp, warp, most));
}

const Loop* parallel_loop(const Stmt& s) {
  const auto* l = std::get_if<Loop>(&s);
  return l && l->parallel() ? l : nullptr;
}

/// `head` and the items behind it, separated by commas; further lines begin with `next`.
std::string wrapped(const std::string& head, const std::vector<std::string>& items, const std::string& next) {
  std::string out, current = head;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (i > 0 && current.size() + item.size() + 1 > line_length) {
      out += current + "\n";
      current = next;
    } else if (i > 0) {
      current += " ";
    }
    current += item;
  }
  return out + current;
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string out;
  for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

CudaEmitter::CudaEmitter(const loops::Kernel& kernel, const std::string& symbol,
                         const std::vector<std::string>& symbols)
    : kernel_(kernel), symbol_(symbol), symbols_(symbols), deps_(kernel) {}

Result<CudaKernel> CudaEmitter::run() {
  TRY_DO(check_kernel(kernel_, {.error = "codegen.cuda", .compiler = "CUDA C++", .complex = true}));
  count_uses();
  choose_index_type();
  find_homes(kernel_.body, nullptr, nullptr);
  name_arguments();
  std::vector<const Stmt*> statements;
  for (const Stmt& s : kernel_.body) {
    if (!std::holds_alternative<loops::Barrier>(s)) {
      statements.push_back(&s);
      continue;
    }
    part(statements);
    statements.clear();
  }
  part(statements);
  if (refused_) return std::move(*refused_);
  return std::move(out_);
}

void CudaEmitter::refuse(const std::string& what) {
  if (!refused_)
    refused_ = unsupported("codegen.cuda", "kernel " + kernel_.name + ": CUDA C++ has no code for " + what);
}

void CudaEmitter::count_uses() {
  uses_.assign(kernel_.scalars.nodes().size(), 0);
  count_uses(kernel_.body);
  for (std::size_t i = uses_.size(); i-- > 0;) {
    if (uses_[i] == 0) continue;
    for (Scalar a : kernel_.scalars.nodes()[i].args)
      if (a.id >= 0) ++uses_[static_cast<std::size_t>(a.id)];
  }
}

void CudaEmitter::count_uses(const std::vector<Stmt>& body) {
  const auto use = [&](Scalar s) {
    if (s.id >= 0) ++uses_[static_cast<std::size_t>(s.id)];
  };
  for (const Stmt& s : body) {
    if (const auto* store = std::get_if<Store>(&s)) {
      use(store->index);
      use(store->value);
    } else if (const auto* reduce = std::get_if<loops::Reduce>(&s)) {
      use(reduce->value);
    } else if (const auto* l = std::get_if<Loop>(&s)) {
      count_uses(l->body);
    }
  }
}

void CudaEmitter::find_homes(const std::vector<Stmt>& body, const Loop* group, const Loop* thread) {
  for (const Stmt& s : body) {
    if (const auto* l = std::get_if<Loop>(&s)) {
      find_homes(l->body, l->mapping == Mapping::Block ? l : group, l->mapping == Mapping::Thread ? l : thread);
      continue;
    }
    const auto* store = std::get_if<Store>(&s);
    if (!store || buffer(store->buffer).role != Buffer::Role::Scratch) continue;
    const bool shared = buffer(store->buffer).scope == Buffer::Scope::Block;
    homes_[store->buffer] = {group, shared ? nullptr : thread};
  }
}

void CudaEmitter::name_arguments() {
  const auto unique = [&](const std::string& name) {
    std::string free = name;
    for (int i = 2; !argument_names_.insert(free).second; ++i) free = fmt::format("{}_{}", name, i);
    return free;
  };
  const auto argument = [&](const std::string& type, const std::string& name) {
    arguments_.push_back(fmt::format("{} {}", type, unique(name)));
    return arguments_.back().substr(type.size() + 1);
  };
  buffer_names_.resize(kernel_.buffers.size());
  for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
    const Buffer& buffer = kernel_.buffers[b];
    if (buffer.role == Buffer::Role::Scratch) continue;
    const bool input = buffer.role == Buffer::Role::Input;
    const std::string type = fmt::format("{}{}* __restrict__", input ? "const " : "", cuda_memory_type(buffer.dtype));
    buffer_names_[b] = argument(type, (input ? "in_" : "out_") + plain_name(buffer.name));
  }
  std::int64_t shared_bytes = 0;
  for (auto& [b, home] : homes_) {
    const Buffer& buffer = this->buffer(b);
    const std::string name = plain_name(buffer.name);
    std::string& in_text = buffer_names_[static_cast<std::size_t>(b)];
    const bool own = home.thread || home.group;  // else memory of the whole kernel, which may have several functions
    if (own) in_text = unique("kept_" + name);
    if (own && buffer.elements.is_int()) {
      const bool shared = !home.thread;
      const std::int64_t bytes = buffer.elements.as_int() * static_cast<std::int64_t>(itemsize(buffer.dtype));
      if (bytes + (shared ? shared_bytes : 0) <= (shared ? shared_limit : local_bytes)) {
        if (shared) shared_bytes += bytes;
        continue;
      }
    }
    home.workspace = static_cast<int>(out_.workspace.size());
    out_.workspace.push_back({buffer.dtype, buffer.elements});
    home.memory = argument(fmt::format("{}* __restrict__", cuda_memory_type(buffer.dtype)), "all_" + name);
    if (!own) in_text = home.memory;
  }
  for (const std::string& s : symbols_) symbol_names_[s] = argument("long long", identifier(s));
  argument("KernelFault*", "fault");
}

void CudaEmitter::choose_index_type() {
  narrow_ = std::ranges::all_of(kernel_.buffers, [&](const Buffer& b) { return fits_32_bits(b.elements); }) &&
            fits_32_bits(kernel_.body);
  if (narrow_)
    for (const ScalarNode& n : kernel_.scalars.nodes())
      if (n.op == ScalarOp::Index || n.op == ScalarOp::Load) narrow_ = narrow_ && fits_32_bits(n.index);
}

bool CudaEmitter::fits_32_bits(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) {
    if (const auto* store = std::get_if<Store>(&s)) {
      if (!fits_32_bits(store->element)) return false;
    } else if (const auto* l = std::get_if<Loop>(&s)) {
      if (const auto range = range_of(l->extent)) extents_[l->var] = range->high;
      if (!fits_32_bits(l->extent) || !fits_32_bits(l->body)) return false;
    }
  }
  return true;
}

/// Leaves room for a step over the end of a loop.
bool CudaEmitter::fits_32_bits(SymExpr e) const {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - (1 << 20);
  const auto range = range_of(e);
  return range && range->low >= -most && range->high <= most &&
         std::ranges::all_of(e.args(), [&](SymExpr a) { return fits_32_bits(a); });
}

/// Writes what stands between two barriers.
void CudaEmitter::part(const std::vector<const Stmt*>& statements) {
  if (std::ranges::all_of(statements, [](const Stmt* s) { return parallel_loop(*s) != nullptr; })) {
    for (const Stmt* s : statements) parallel_loop(*s)->mapping == Mapping::Block ? group(*s) : threads(*s);
    return;
  }
  // One thread runs loops of any mapping.
  CudaFunction f;
  begin(f, statements);
  in_thread_ = true;
  for (const Stmt* s : statements) statement(*s);
  finish(std::move(f), "one thread");
}

/// The iterations of loops that stand one in the other, one for each thread.
void CudaEmitter::threads(const Stmt& stmt) {
  std::vector<const Loop*> nest;
  for (const Stmt* s = &stmt; s; s = nest.back()->body.size() == 1 ? &nest.back()->body[0] : nullptr) {
    const auto* l = std::get_if<Loop>(s);
    if (!l || l->mapping != Mapping::Thread) break;
    if (std::ranges::any_of(nest, [&](const Loop* outer) { return mentions(l->extent, outer->var); })) break;
    nest.push_back(l);
  }
  const bool strides = std::ranges::any_of(homes_, [&](const auto& home) {
    return home.second.workspace >= 0 && std::ranges::find(nest, home.second.thread) != nest.end();
  });
  const Loop& inner = *nest.back();
  const bool nested = nest.size() > 1;
  const int lanes = strides ? 1 : flat_lanes(nest);
  std::vector<SymExpr> extents;  // in threads, where loops are nested
  for (const Loop* l : nest) extents.push_back(l->extent);
  if (nested) extents.back() = sym_floordiv(inner.extent + (lanes - 1), lanes);
  const SymExpr total = product(extents);
  if (total.is(0)) return;
  CudaFunction f;
  f.threads = total.is_int() ? whole_warps(total.as_int(), loop_threads) : loop_threads;
  const std::int64_t step = std::int64_t{f.threads} * (nested ? 1 : lanes);
  f.blocks = sym_floordiv(total + (step - 1), step);
  if (strides) f.blocks = sym_min(f.blocks, scratch_blocks);
  begin(f, {&stmt});
  in_thread_ = true;
  const std::string at = lanes > 1 ? fresh("v" + inner.var.substr(1)) : inner.var, i = nested ? fresh("i") : at;
  const std::string end = index(total).as(Expression::Sum);
  std::string first = fmt::format("blockIdx.x * {}{} + threadIdx.x", f.threads, narrow_ ? "" : "LL");
  if (lanes > 1 && !nested) first = fmt::format("({}) * {}", first, lanes);
  if (!strides) {
    line(fmt::format("const {} {} = {};", index_type(), i, first));
    if (!sym_mod(total, step).is(0)) line(fmt::format("if ({} >= {}) return;", i, end));
  }
  open(lanes > 1 ? std::vector(nest.begin(), std::prev(nest.end())) : nest);
  if (nested) {
    SymExpr within = 1;
    for (std::size_t k = nest.size(); k-- > 0;) {
      Expression digit{i};
      if (!within.is(1)) digit = {digit.text + " / " + index(within).as(Expression::Unary), Expression::Product};
      if (k > 0) digit = {digit.text + " % " + index(extents[k]).as(Expression::Unary), Expression::Product};
      const bool by_lanes = nest[k] == &inner && lanes > 1;
      if (by_lanes) digit.text = fmt::format("{} * {}", digit.text, lanes);
      line(fmt::format("const {} {} = {};", index_type(), by_lanes ? at : nest[k]->var, digit.text));
      within = within * extents[k];
    }
  }
  if (lanes > 1)
    lane_loop(
        inner, lanes,
        sym_mod(inner.extent, lanes).is(0) ? "" : fmt::format("{} - {}", index(inner.extent).as(Expression::Sum), at),
        at);
  else
    statements(nest.back()->body);
  close(strides ? fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += gridDim.x * {4}) {{", index_type(), i, first, end,
                              f.threads)
                : "");
  finish(std::move(f), lanes > 1 ? fmt::format("a thread for each {} iterations of {}", lanes, inner.var)
                                 : "a thread for each iteration of " + nest[0]->var);
}

/// The iterations of a Block loop, each by the threads of a block.
void CudaEmitter::group(const Stmt& stmt) {
  const Loop& l = std::get<Loop>(stmt);
  if (l.extent.is(0)) return;
  choose_rows(l);
  CudaFunction f;
  f.blocks = group_is_warp_ ? sym_floordiv(l.extent + (warps_of_block - 1), warps_of_block) : l.extent;
  f.threads = group_is_warp_ ? warp * warps_of_block : group_threads_;
  begin(f, {&stmt});
  group_ = &l;
  if (group_is_warp_) {
    line(fmt::format("const {} {} = blockIdx.x * {} + threadIdx.x / {}, lane = threadIdx.x % {};", index_type(), l.var,
                     warps_of_block, warp, warp));
    if (!sym_mod(l.extent, warps_of_block).is(0))
      line(fmt::format("if ({} >= {}) return;", l.var, index(l.extent).as(Expression::Sum)));
  } else {
    line(fmt::format("const {} {} = blockIdx.x;", index_type(), l.var));
  }
  for (Held& h : held_) {
    h.name = fresh(graph_name(h.buffer) + "_row");
    std::string type(cuda_memory_type(buffer(h.buffer).dtype));
    if (row_lanes_ > 1) type = fmt::format("Pack<{}, {}>", type, row_lanes_);
    line(fmt::format("{} {}{};", type, h.name, row_iterations_ > 1 ? fmt::format("[{}]", row_iterations_) : ""));
  }
  open({&l});
  statements(l.body);
  close("");
  finish(std::move(f), fmt::format("a {} for each iteration of {}", group_is_warp_ ? "warp" : "block", l.var));
}

void CudaEmitter::begin(const CudaFunction& f, const std::vector<const Stmt*>& body) {
  scopes_.clear();
  scopes_.push_back({llvm::SmallBitVector(static_cast<unsigned>(deps_.loop_stores.size()))});
  current_ = 0;
  taken_ = argument_names_;
  taken_.insert({"k", "lane", "turn"});
  for (const auto& [var, loop] : deps_.loop_of_var) taken_.insert(var);
  accumulator_names_.assign(kernel_.accumulators.size(), "");
  group_ = nullptr;
  in_thread_ = cooperates_ = false;
  lanes_.reset();
  if (!parallel_loop(*body[0]) || parallel_loop(*body[0])->mapping != Mapping::Block) held_.clear();
  std::set<int> stored;
  const auto collect = [&](const auto& self, const Stmt& s) -> void {
    if (const auto* store = std::get_if<Store>(&s)) stored.insert(store->buffer);
    if (const auto* l = std::get_if<Loop>(&s))
      for (const Stmt& inner : l->body) self(self, inner);
  };
  for (const Stmt* s : body) collect(collect, *s);
  for (auto& [b, home] : homes_) {
    if (!stored.contains(b) || (!home.group && !home.thread)) continue;
    if (std::ranges::find(held_, b, &Held::buffer) != held_.end()) continue;
    const std::string type(cuda_memory_type(buffer(b).dtype));
    const std::string& name = buffer_names_[static_cast<std::size_t>(b)];
    if (home.workspace < 0) {
      line(fmt::format("{}{} {}[{}];", home.thread ? "" : "__shared__ ", type, name, buffer(b).elements.as_int()));
      continue;
    }
    SymExpr copies = f.blocks;
    std::string copy = "blockIdx.x";
    if (home.thread) {
      copies = copies * f.threads;
      copy = fmt::format("(blockIdx.x * {}LL + threadIdx.x)", f.threads);
    }
    auto& workspace = out_.workspace[static_cast<std::size_t>(home.workspace)];
    workspace.elements = copies * buffer(b).elements;
    line(fmt::format("{}* const {} = {} + {} * {};", type, name, home.memory, copy,
                     index(buffer(b).elements).as(Expression::Unary) + (buffer(b).elements.is_int() ? "LL" : "")));
  }
}

void CudaEmitter::finish(CudaFunction f, const std::string& launch) {
  CHECK(scopes_.size() == 1 && current_ == 0, "an open scope");
  f.name = symbol_ + "_" + std::to_string(out_.functions.size());
  f.cooperates = cooperates_;
  const std::size_t before = out_.text.size();
  if (out_.functions.empty())
    out_.text +=
        wrapped(fmt::format("// {}{}", kernel_.name, kernel_.origins.empty() ? "" : ": "), kernel_.origins, "// ");
  out_.text += fmt::format("\n// {} block{} of {}: {}\n", f.blocks.str(), f.blocks.is(1) ? "" : "s", f.threads, launch);
  const std::string head = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(", f.threads, f.name);
  out_.text += wrapped(head, arguments_, "    ") + ") {\n";
  for (const char c : out_.text.substr(before)) out_.lines.resize(out_.lines.size() + (c == '\n'));
  for (Line& l : scopes_[0].lines) {
    out_.text += (l.text.starts_with('#') ? "" : "  ") + l.text + "\n";
    out_.lines.push_back(std::move(l.sources));
  }
  out_.text += "}\n";
  out_.lines.emplace_back();
  out_.functions.push_back(std::move(f));
}

Result<CudaKernel> emit_cuda(const loops::Kernel& kernel, const std::string& symbol,
                             const std::vector<std::string>& symbols) {
  return CudaEmitter(kernel, symbol, symbols).run();
}

KernelEntry cuda_entry(const CudaKernel& kernel) {
  KernelEntry entry;
  for (const CudaFunction& f : kernel.functions)
    entry.phases.push_back({.symbol = f.name,
                            .parallel = true,
                            .iterations = f.blocks,
                            .threads = f.threads,
                            .shared_bytes = f.shared_bytes});
  for (const CudaKernel::Workspace& w : kernel.workspace) {
    entry.workspace.push_back(w.elements);
    entry.workspace_item.push_back(itemsize(w.dtype));
  }
  return entry;
}

loops::Target cuda_target() {
  loops::Target target;
  target.device = DeviceType::Cuda;
  target.routines = matrix_routines();
  target.threads = 1 << 16;
  target.vector_bytes = 16;
  target.parallel_elements = 0;
  target.few_results = 256;
  target.few_columns = 1 << 15;
  target.few_channels = target.split_results = 1 << 14;
  target.split_rows = 128;
  target.picked_elements = 1 << 22;
  target.scratch_elements = 12 << 10;  // of four bytes, in the 48 KiB that a group of threads shares
  target.complex_ops = {ScalarOp::Add,   ScalarOp::Sub,   ScalarOp::Mul,   ScalarOp::Div,    ScalarOp::Pow,
                        ScalarOp::Neg,   ScalarOp::Conj,  ScalarOp::Abs,   ScalarOp::Sign,   ScalarOp::Sqrt,
                        ScalarOp::Rsqrt, ScalarOp::Exp,   ScalarOp::Exp2,  ScalarOp::Expm1,  ScalarOp::Log,
                        ScalarOp::Log2,  ScalarOp::Log10, ScalarOp::Log1p, ScalarOp::Sin,    ScalarOp::Cos,
                        ScalarOp::Tan,   ScalarOp::Asin,  ScalarOp::Acos,  ScalarOp::Atan,   ScalarOp::Sinh,
                        ScalarOp::Cosh,  ScalarOp::Tanh,  ScalarOp::Asinh, ScalarOp::Acosh,  ScalarOp::Atanh,
                        ScalarOp::Eq,    ScalarOp::Ne,    ScalarOp::IsNan, ScalarOp::Sigmoid};
  target.atomic_sums = !config().deterministic;
  return target;
}

}  // namespace partita::codegen
