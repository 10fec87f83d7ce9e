#include "core/ir/meta.h"

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/extent.h"
#include "core/sym/term_budget.h"

namespace partita {

Meta::Meta(const Meta&) = default;
Meta::Meta(Meta&&) noexcept = default;
Meta& Meta::operator=(const Meta&) = default;
Meta& Meta::operator=(Meta&&) noexcept = default;
Meta::~Meta() = default;

std::string join(const SymList& list) {
  std::string out;
  for (const SymExpr& e : list) out += (out.empty() ? "" : ", ") + e.str();
  return out;
}

namespace {

/// Splits the text within the brackets that open at text[at] at its top-level commas, and moves `at` past ']'.
bool bracketed(std::string_view text, std::size_t& at, std::vector<std::string_view>& items) {
  if (at >= text.size() || text[at] != '[') return false;
  int depth = 0;
  std::size_t start = at + 1;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')') --depth;
    bool closes = c == ']' && depth == 0;
    if (c == ']' && !closes) --depth;
    if ((c == ',' && depth == 0) || closes) {
      if (i > start) items.push_back(text.substr(start, i - start));
      start = i + 1;
    }
    if (closes) {
      at = i + 1;
      return true;
    }
  }
  return false;
}

Result<SymList> parse_list(const std::vector<std::string_view>& items) {
  SymList out;
  for (std::string_view item : items) {
    TRY(out.emplace_back(), SymExpr::parse(item));
  }
  return out;
}

}  // namespace

TensorMeta TensorMeta::contiguous(DType dtype, SymList sizes, Device device) {
  TensorMeta m;
  m.dtype = dtype;
  m.device = device;
  m.strides = contiguous_strides(sizes);
  m.sizes = std::move(sizes);
  return m;
}

std::string annotation(const Meta& meta) {
  if (const TensorMeta* t = meta.tensor()) {
    std::string out = fmt::format("{}[{}]", short_name(t->dtype), join(t->sizes));
    if (t->strides_known) out += fmt::format("[{}]", join(t->strides));
    if (t->device_known) out += t->device.str();
    return out;
  }
  if (const SymExpr* e = meta.sym()) return fmt::format("Sym({})", e->str());
  if (auto* opaque = std::get_if<OpaqueMeta>(&meta.v)) return opaque->text;
  return {};
}

Result<Meta> parse_annotation(std::string_view text) {
  const TermBudget budget(text.size());
  if (text.starts_with("Sym(") && text.ends_with(")")) {
    TRY(SymExpr e, SymExpr::parse(text.substr(4, text.size() - 5)));
    return Meta(e);
  }
  std::size_t at = text.find('[');
  auto dtype = at == std::string_view::npos ? std::nullopt : dtype_from_short(text.substr(0, at));
  std::vector<std::string_view> sizes, strides;
  if (!dtype || !bracketed(text, at, sizes)) return Meta(OpaqueMeta{std::string(text)});
  TensorMeta t;
  t.dtype = *dtype;
  TRY(t.sizes, parse_list(sizes));
  t.strides_known = bracketed(text, at, strides);
  if (t.strides_known) {
    TRY(t.strides, parse_list(strides));
    if (t.strides.size() != t.sizes.size())
      return input_error("ir.annotation", fmt::format("annotation '{}': {} sizes but {} strides; correct the text",
                                                      text.substr(0, 200), t.sizes.size(), t.strides.size()));
  } else {
    TRY(t.strides, catch_raised<SymList>([&] { return contiguous_strides(t.sizes); }));
  }
  t.device_known = at < text.size();
  if (t.device_known) {
    auto device = Device::parse(text.substr(at));
    if (!device) return Meta(OpaqueMeta{std::string(text)});
    t.device = *device;
  }
  TRY_DO(check_extent(t));
  return Meta(std::move(t));
}

bool same_annotation(const Meta& a, const Meta& b) {
  const TensorMeta *x = a.tensor(), *y = b.tensor();
  if (x && y) {
    return x->dtype == y->dtype && x->sizes == y->sizes &&
           (!x->strides_known || !y->strides_known || x->strides == y->strides) &&
           (!x->device_known || !y->device_known || x->device == y->device);
  }
  if (a.sym() && b.sym()) {
    // Text holds only 15 digits of a float.
    if (a.sym()->is_float()) return a.sym()->str() == b.sym()->str();
    return *a.sym() == *b.sym();
  }
  return a.v.index() == b.v.index() && annotation(a) == annotation(b);
}

SymExpr byte_size(const TensorMeta& meta) {
  return meta.numel() * static_cast<std::int64_t>(itemsize(meta.dtype));
}

}  // namespace partita
