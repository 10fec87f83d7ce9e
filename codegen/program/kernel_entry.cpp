#include "codegen/program/kernel_entry.h"

#include <algorithm>

namespace partita::codegen {

using loops::Kernel;
using loops::Loop;
using loops::ScalarNode;
using loops::Stmt;

namespace {

constexpr std::size_t scratch_alignment = 64;

bool plain_index(const SymExpr& e, bool rounds);

/// What is rounded to a size.
bool plain_real(const SymExpr& e) {
  if (!e.is_float()) return plain_index(e, true);
  switch (e.kind()) {
    case SymKind::Float:
    case SymKind::Symbol:
      return true;
    case SymKind::Add:
    case SymKind::Mul:
    case SymKind::TrueDiv:
      return std::ranges::all_of(e.args(), plain_real);
    case SymKind::Call:
      return e.name() == "ToFloat" && plain_real(e.args()[0]);
    default:
      return false;
  }
}

/// rounds: sizes may be rounded from real numbers.
bool plain_index(const SymExpr& e, bool rounds) {
  if (e.is_float()) return e.kind() == SymKind::Symbol;  // its bits
  switch (e.kind()) {
    case SymKind::Computed:
      return false;
    case SymKind::Call:
      return rounds && (e.name() == "TruncToInt" || e.name() == "FloorToInt" || e.name() == "CeilToInt") &&
             plain_real(e.args()[0]);
    case SymKind::Pow:
      return e.args()[1].is_int() && e.args()[1].as_int() > 0 && e.args()[1].as_int() < 16 &&
             plain_index(e.args()[0], rounds);
    default:
      return std::ranges::all_of(e.args(), [&](const SymExpr& a) { return plain_index(a, rounds); });
  }
}

Status each_stmt(const std::vector<Stmt>& body, const auto& f) {
  for (const Stmt& s : body) {
    TRY_DO(f(s));
    if (auto* loop = std::get_if<Loop>(&s)) TRY_DO(each_stmt(loop->body, f));
  }
  return {};
}

}  // namespace

Status check_kernel(const Kernel& kernel, const EmitterReach& emitter) {
  const auto has_code = [&](DType dtype) { return has_arithmetic(dtype) && (emitter.complex || !is_complex(dtype)); };
  auto refuse = [&](const std::string& what) {
    return unsupported(emitter.error, "kernel " + kernel.name + ": " + emitter.compiler + " has no code for " + what);
  };
  auto check_index = [&](const SymExpr& e) -> Status {
    if (!plain_index(e, emitter.rounds)) return refuse("the index " + e.str());
    return {};
  };
  for (const loops::Buffer& b : kernel.buffers) {
    if (!has_code(b.dtype)) return refuse("tensors of " + std::string(torch_name(b.dtype)));
    TRY_DO(check_index(b.elements));
  }
  for (const ScalarNode& n : kernel.scalars.nodes()) {
    if (!has_code(n.dtype)) return refuse("arithmetic of " + std::string(torch_name(n.dtype)));
    TRY_DO(check_index(n.index));
  }
  return each_stmt(kernel.body, [&](const Stmt& s) -> Status {
    if (auto* loop = std::get_if<Loop>(&s)) return check_index(loop->extent);
    if (auto* store = std::get_if<loops::Store>(&s)) return check_index(store->element);
    return {};
  });
}

std::size_t KernelEntry::scratch_bytes(const std::function<std::int64_t(const SymExpr&)>& value) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    std::size_t n = static_cast<std::size_t>(value(scratch[i])) * scratch_item[i];
    bytes += (n + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
  }
  return bytes;
}

}  // namespace partita::codegen
