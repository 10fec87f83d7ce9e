// Neighbouring iterations in one thread, with loads and stores of 16 bytes, and rows that a group's threads keep in
// registers from one loop over them to the next.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"

namespace partita::codegen {

using loops::Accumulate;
using loops::Buffer;
using loops::Loop;
using loops::Mapping;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

namespace {

constexpr std::int64_t most_iterations = 8;
constexpr std::int64_t most_threads = 512;
constexpr std::size_t most_held_bytes = 256;     // of registers that a thread keeps a row in
constexpr std::int64_t many_elements = 1 << 15;  // for which threads with several elements each are enough

SymExpr symbol(const std::string& name) {
  return SymExpr::symbol(name);
}

SymExpr replaced(SymExpr e, const std::string& var, SymExpr by) {
  return e.substitute([&](const std::string& name) { return name == var ? std::optional(by) : std::nullopt; });
}

/// The element of a row, for which all loops over it have one name.
SymExpr in_row(SymExpr e, const Loop& l) {
  return replaced(e, l.var, symbol("row"));
}

/// Has each iteration an element of its own?
bool is_own(SymExpr e, const std::string& var) {
  const SymExpr step = replaced(e, var, symbol(var) + 1) - e;
  return step.is_int() && !step.is(0);
}

bool mentions_word(const std::string& text, const std::string& word) {
  const auto is_part = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
  return false;
}

}  // namespace

std::vector<CudaEmitter::Access> CudaEmitter::accesses(const std::vector<Stmt>& body) const {
  std::vector<Access> out;
  std::set<int> seen;
  const auto add = [&](Access a) {
    if (std::ranges::find(out, a) == out.end()) out.push_back(a);
  };
  const auto loads = [&](const auto& self, Scalar s) -> void {
    if (s.id < 0 || !seen.insert(s.id).second) return;
    const ScalarNode& n = kernel_.scalars[s];
    if (n.op == ScalarOp::Load) add({n.slot, n.index, n.args[0].id >= 0});
    for (const Scalar a : n.args) self(self, a);
  };
  for (const Stmt& s : body) {
    if (const auto* r = std::get_if<loops::Reduce>(&s)) loads(loads, r->value);
    const auto* store = std::get_if<Store>(&s);
    if (!store) continue;
    loads(loads, store->value);
    loads(loads, store->index);
    add({store->buffer, store->element, store->index.id >= 0, true, store->accumulate != Accumulate::None});
  }
  return out;
}

/// Is it an access of `lanes` neighbours that begin at a multiple of their number, or do so for some sizes? What the
/// loop stores is then accessed nowhere else.
bool CudaEmitter::in_pack(const Access& a, const Loop& l, int lanes) const {
  if (a.computed || a.adds || buffer(a.buffer).role == Buffer::Role::Scratch) return false;
  const auto step = lane_step(a.element, l.var, lanes);
  const SymExpr for_some = a.element.substitute([&](const std::string& name) {
    const bool is_size = std::ranges::find(symbols_, name) != symbols_.end();
    return is_size ? std::optional(symbol(name) * lanes) : std::nullopt;
  });
  if (!step || !step->is(1) || divisor(for_some, l.var, lanes) % lanes != 0) return false;
  const std::vector<Access> all = accesses(l.body);
  const bool stored = std::ranges::any_of(all, [&](const Access& o) { return o.buffer == a.buffer && o.stores; });
  return !stored || std::ranges::all_of(all, [&](const Access& o) {
    return o.buffer != a.buffer || (o.element == a.element && !o.computed && !o.adds);
  });
}

/// The suffix of the prelude's functions for packs: "_any" where only the sizes of a run decide whether the pack is
/// aligned.
const char* CudaEmitter::where_aligned(SymExpr element) const {
  return divisor(element, lanes_->loop->var, lanes_->count) % lanes_->count == 0 ? "" : "_any";
}

/// The neighbours that each thread takes, so that most accesses that can be of 16 bytes are.
int CudaEmitter::choose_lanes(const std::vector<const Loop*>& loops) const {
  for (const int lanes : {8, 4, 2}) {
    std::size_t item = 16, largest = 1;
    int steps = 0, packs = 0;
    for (const Loop* l : loops)
      for (const Access& a : accesses(l->body)) {
        const auto step = a.computed ? std::nullopt : lane_step(a.element, l->var, 1);
        if (!step || !step->is(1) || buffer(a.buffer).role == Buffer::Role::Scratch) continue;
        ++steps;
        packs += in_pack(a, *l, lanes);
        item = std::min(item, itemsize(buffer(a.buffer).dtype));
        largest = std::max(largest, itemsize(buffer(a.buffer).dtype));
      }
    const auto n = static_cast<std::size_t>(lanes);
    if (packs > 0 && 2 * packs >= steps && item * n <= 16 && largest * n <= 32) return lanes;
  }
  return 1;
}

/// Decides how the threads of a group share the loops over its row.
void CudaEmitter::choose_rows(const Loop& group) {
  row_loops_.clear();
  held_.clear();
  row_lanes_ = 1;
  row_iterations_ = 0;
  group_is_warp_ = false;
  barriers_ = true;
  std::vector<const Loop*> rows;
  bool plain = true;  // nothing but such loops, and what one thread stores
  std::int64_t longest = 1;
  for (const Stmt& s : group.body) {
    const auto* l = std::get_if<Loop>(&s);
    if (!l) continue;
    const bool row = l->mapping == Mapping::Thread && l->vector && (rows.empty() || l->extent == rows[0]->extent);
    plain = plain && row;
    if (row) rows.push_back(l);
    longest = std::max(longest, l->extent.is_int() ? l->extent.as_int() : most_threads);
  }
  group_threads_ = static_cast<int>(std::clamp<std::int64_t>((longest + warp - 1) / warp * warp, warp, most_threads));
  if (rows.empty() || !plain) return;
  row_loops_.insert(rows.begin(), rows.end());
  const SymExpr extent = rows[0]->extent;
  row_lanes_ = choose_lanes(rows);
  const std::int64_t n = extent.is_int() ? extent.as_int() : INT32_MAX;
  if (n < std::int64_t{warp} * row_lanes_) row_lanes_ = 1;
  const std::int64_t units = (n + row_lanes_ - 1) / row_lanes_;
  const bool few = units <= 4 * warp;
  group_threads_ =
      few ? warp
          : static_cast<int>(std::clamp<std::int64_t>((units / 4 + warp - 1) / warp * warp, 2 * warp, most_threads));
  hold_rows(group, n);
  const bool shares = std::ranges::any_of(homes_, [&](const auto& home) {
    return home.second.group == &group && !home.second.thread &&
           std::ranges::none_of(held_, [&](const Held& h) { return h.buffer == home.first; });
  });
  group_is_warp_ = few && !barriers_ && !shares;
}

void CudaEmitter::hold_rows(const Loop& group, std::int64_t extent) {
  struct Use {
    int loops = 0;  ///< over the row, in which it is accessed
    SymExpr element;
  };
  std::map<int, std::vector<Use>> uses;
  std::map<int, bool> stored, loaded, own;
  for (const Stmt& s : group.body) {
    const auto* l = std::get_if<Loop>(&s);
    if (const auto* store = std::get_if<Store>(&s)) {
      for (const Access& a : accesses({s})) {
        (a.stores ? stored : loaded)[a.buffer] = true;
        if (buffer(a.buffer).role != Buffer::Role::Input) own.insert_or_assign(a.buffer, false);
      }
      (void)store;
    }
    if (!l) continue;
    std::vector<std::pair<int, SymExpr>> met;
    for (const Access& a : accesses(l->body)) {
      (a.stores ? stored : loaded)[a.buffer] = true;
      const SymExpr element = in_row(a.element, *l);
      // What is held is loaded and stored as packs.
      const bool by_lanes =
          row_lanes_ == 1 || buffer(a.buffer).role == Buffer::Role::Scratch || in_pack(a, *l, row_lanes_);
      const bool is_own_element = !a.computed && !a.adds && by_lanes && is_own(a.element, l->var);
      const auto mine = own.try_emplace(a.buffer, true).first;
      auto& of_buffer = uses[a.buffer];
      mine->second = mine->second && is_own_element && (of_buffer.empty() || of_buffer[0].element == element);
      if (!is_own_element || std::ranges::find(met, std::pair(a.buffer, element)) != met.end()) continue;
      met.emplace_back(a.buffer, element);
      auto use = std::ranges::find(of_buffer, element, &Use::element);
      if (use == of_buffer.end()) use = of_buffer.insert(use, {0, element});
      ++use->loops;
    }
  }
  barriers_ = std::ranges::any_of(stored, [&](const auto& b) { return loaded.contains(b.first) && !own[b.first]; });
  const std::int64_t step = std::int64_t{group_threads_} * row_lanes_, iterations = (extent + step - 1) / step;
  if (iterations > most_iterations) return;
  std::size_t bytes = 0;
  for (const bool inputs : {false, true})
    for (const auto& [b, elements] : uses) {
      if (inputs == stored.contains(b) || (!inputs && (!own[b] || !loaded.contains(b)))) continue;
      for (const Use& use : elements) {
        const std::size_t more = static_cast<std::size_t>(iterations * row_lanes_) * itemsize(buffer(b).dtype);
        if ((inputs && use.loops < 2) || bytes + more > most_held_bytes) continue;
        bytes += more;
        held_.push_back({b, use.element, {}});
      }
    }
  if (!held_.empty()) row_iterations_ = static_cast<int>(iterations);
}

CudaEmitter::Held* CudaEmitter::held(int buffer, SymExpr element, bool computed) {
  if (computed || !lanes_ || !row_loops_.contains(lanes_->loop)) return nullptr;
  const SymExpr e = in_row(element, *lanes_->loop);
  const auto it = std::ranges::find_if(held_, [&](const Held& h) { return h.buffer == buffer && h.element == e; });
  return it == held_.end() ? nullptr : &*it;
}

/// Where a pack begins: the first lane's element.
std::string CudaEmitter::address(int buffer, SymExpr element) {
  variable_[lanes_->loop->var] = lanes_->first;
  const Expression at = index(element);
  variable_.clear();
  const std::string& name = buffer_names_[static_cast<std::size_t>(buffer)];
  return at.text == "0" ? name : fmt::format("{} + {}", name, at.as(Expression::Sum));
}

/// Writes the body of a loop for the lanes of a thread. The current scope is that of the first lane.
void CudaEmitter::lane_loop(const Loop& l, int count, const std::string& left, const std::string& first) {
  lanes_ = Lanes{&l, count, row_loops_.contains(&l) ? row_iterations_ : 0, first, left, {}, current_, {}, {}};
  if (count == 1) {
    statements(l.body);
    lanes_.reset();
    return;
  }
  lanes_->lane = "k";
  open({&l});
  statements(l.body);
  const std::string lane = fmt::format("{} + {}", first, lanes_->lane);
  std::vector<Line> head;
  if (std::ranges::any_of(scopes_[current_].lines, [&](const Line& x) { return mentions_word(x.text, l.var); }))
    head.push_back({fmt::format("const {} {} = {};", index_type(), l.var, lane), {}});
  if (!left.empty()) head.insert(head.begin(), {fmt::format("if ({} >= {}) break;", lanes_->lane, left), {}});
  scopes_[current_].lines.insert(scopes_[current_].lines.begin(), head.begin(), head.end());
  close(fmt::format("#pragma unroll\nfor (int {0} = 0; {0} < {1}; ++{0}) {{", lanes_->lane, count));
  for (const std::string& text : lanes_->stores) line(text);
  lanes_.reset();
}

/// An element of a pack or of what is held, for the lane.
std::string CudaEmitter::of_lane(const std::string& name, bool is_held) const {
  std::string out = name;
  if (is_held && lanes_->iterations > 1) out += "[turn]";
  if (lanes_->count > 1) out += fmt::format("[{}]", lanes_->lane);
  return out;
}

/// The element as a lane has it, if it was loaded with those of other lanes or is held.
std::optional<std::string> CudaEmitter::lane_load(int b, SymExpr element, bool computed) {
  if (!lanes_) return std::nullopt;
  const std::string left = lanes_->left.empty() ? "" : ", " + lanes_->left;
  const auto loaded = [&] {
    if (lanes_->count == 1)
      return fmt::format("{}[{}]", buffer_names_[static_cast<std::size_t>(b)], index(element).text);
    return fmt::format("load{}<{}>({}{})", where_aligned(element), lanes_->count, address(b, element), left);
  };
  if (Held* h = held(b, element, computed)) {
    if (!h->filled) {
      const std::string to = h->name + (lanes_->iterations > 1 ? "[turn]" : "");
      scopes_[lanes_->scope].lines.push_back({fmt::format("{} = {};", to, loaded()), {}});
      h->filled = true;
    }
    return of_lane(h->name, true);
  }
  if (lanes_->count == 1 || !in_pack({b, element, computed}, *lanes_->loop, lanes_->count)) return std::nullopt;
  auto& packs = lanes_->packs;
  auto pack = std::ranges::find(packs, std::pair(b, element), [](const auto& p) { return p.first; });
  if (pack == packs.end()) {
    pack = packs.insert(packs.end(), {{b, element}, fresh(graph_name(b))});
    scopes_[lanes_->scope].lines.push_back(
        {fmt::format("const Pack<{}, {}> {} = {};", cuda_memory_type(buffer(b).dtype), lanes_->count, pack->second,
                     loaded()),
         {}});
  }
  return of_lane(pack->second, false);
}

/// Stores with other lanes, or in what is held; false: the lane stores on its own.
bool CudaEmitter::lane_store(const Store& s, const std::string& value) {
  const bool computed = s.index.id >= 0, in_memory = buffer(s.buffer).role != Buffer::Role::Scratch;
  Held* h = held(s.buffer, s.element, computed);
  if (!h && (lanes_->count == 1 || !in_pack({s.buffer, s.element, computed, true}, *lanes_->loop, lanes_->count)))
    return false;
  std::string pack;
  if (h) {
    h->filled = true;
    pack = h->name + (lanes_->iterations > 1 ? "[turn]" : "");
    line(fmt::format("{} = {};", of_lane(h->name, true), value));
    if (!in_memory) return true;
    if (lanes_->count == 1) {
      line(fmt::format("{}[{}] = {};", buffer_names_[static_cast<std::size_t>(s.buffer)], index(s.element).text, pack));
      return true;
    }
  } else {
    pack = fresh(graph_name(s.buffer));
    scopes_[lanes_->scope].lines.push_back(
        {fmt::format("Pack<{}, {}> {};", cuda_memory_type(buffer(s.buffer).dtype), lanes_->count, pack), {}});
    line(fmt::format("{} = {};", of_lane(pack, false), value));
  }
  lanes_->stores.push_back(fmt::format("store{}({}, {}{});", where_aligned(s.element), address(s.buffer, s.element),
                                       pack, lanes_->left.empty() ? "" : ", " + lanes_->left));
  return true;
}

/// The iterations that a thread takes of the innermost of loops over all of a kernel's elements.
int CudaEmitter::flat_lanes(const std::vector<const Loop*>& nest) const {
  const Loop& inner = *nest.back();
  SymExpr elements = 1;
  for (const Loop* l : nest) elements = elements * l->extent;
  if (!inner.vector || (elements.is_int() && elements.as_int() < many_elements)) return 1;
  const int lanes = choose_lanes({&inner});
  return nest.size() > 1 && inner.extent.is_int() && inner.extent.as_int() % lanes != 0 ? 1 : lanes;
}

}  // namespace partita::codegen
