// torch.gradient: derivatives of sampled functions.
#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

using Names = std::vector<std::pair<std::string, Arg>>;

/// The derivative from samples at equal distances `step`: central differences, one-sided ones at the ends.
Arg even_gradient(DecomposeCall& c, std::int64_t dim, double step) {
  Names names = {{"d", dim}, {"step", step}};
  names.emplace_back("center",
                     build_program(c, "left = slice(self, d, 0, -2); (slice(self, d, 2) - left) / step", names));
  std::string_view first = "a = slice(self, d, 0, 1); (slice(self, d, 1, 2) - a) / step";
  std::string_view last = "a = slice(self, d, -2, -1); (slice(self, d, -1) - a) / step";
  if (c.integer("edge_order") == 2) {
    first =
        "third = slice(self, d, 2, 3) * 0.5; second = slice(self, d, 1, 2) * 2;"
        "(slice(self, d, 0, 1) * -1.5 + second - third) / step";
    last =
        "first = slice(self, d, -1) * 1.5; second = slice(self, d, -2, -1) * 2;"
        "(slice(self, d, -3, -2) * 0.5 - second + first) / step";
  }
  names.emplace_back("first", build_program(c, first, names));
  names.emplace_back("last", build_program(c, last, names));
  return build_program(c, "cat([first, center / 2, last], d)", names);
}

/// The derivative from samples at the coordinates `points`: that of the parabola through three neighbours.
Arg uneven_gradient(DecomposeCall& c, std::int64_t dim, const Arg& points) {
  std::vector<std::int64_t> along(c.tensor("self").dim(), 1);
  along[static_cast<std::size_t>(dim)] = -1;
  Names names = {{"d", dim}, {"along", list_of(along)}};
  names.emplace_back("dx", build_program(c, "diff(points, 1, 0)", {{"points", points}}));
  names.emplace_back("l", build_program(c, "slice(dx, 0, 0, -1)", names));
  names.emplace_back("r", build_program(c, "slice(dx, 0, 1)", names));
  Arg center = build_program(c,
                             "low = l * (l + r); a = reshape(-r / low, along);"
                             "low = l * r; b = reshape((r - l) / low, along);"
                             "low = r * (l + r); c = reshape(l / low, along);"
                             "z = c * slice(self, d, 2); y = b * slice(self, d, 1, -1);"
                             "a * slice(self, d, 0, -2) + y + z",
                             names);
  std::string_view first = "h = select(dx, 0, 0); a = slice(self, d, 0, 1); (slice(self, d, 1, 2) - a) / h";
  std::string_view last = "h = select(dx, 0, -1); a = slice(self, d, -2, -1); (slice(self, d, -1) - a) / h";
  if (c.integer("edge_order") == 2) {
    first =
        "k = select(dx, 0, 1); s = select(dx, 0, 0) + k; low = select(dx, 0, 0) * s;"
        "k = select(dx, 0, 1); a = -(select(dx, 0, 0) * 2.0 + k) / low;"
        "k = select(dx, 0, 1); low = select(dx, 0, 0) * k; k = select(dx, 0, 1); b = (select(dx, 0, 0) + k) / low;"
        "k = select(dx, 0, 1); s = select(dx, 0, 0) + k; low = select(dx, 0, 1) * s; c = -select(dx, 0, 0) / low;"
        "z = c * slice(self, d, 2, 3); y = b * slice(self, d, 1, 2); a * slice(self, d, 0, 1) + y + z";
    last =
        "k = select(dx, 0, -2); s = select(dx, 0, -1) + k; low = select(dx, 0, -2) * s; a = select(dx, 0, -1) / low;"
        "k = select(dx, 0, -2); low = select(dx, 0, -1) * k; k = select(dx, 0, -2); b = -(select(dx, 0, -1) + k) / low;"
        "k = select(dx, 0, -2); s = select(dx, 0, -1) + k; low = select(dx, 0, -1) * s;"
        "k = select(dx, 0, -2); c = (select(dx, 0, -1) * 2 + k) / low;"
        "z = c * slice(self, d, -1); y = b * slice(self, d, -2, -1); a * slice(self, d, -3, -2) + y + z";
  }
  Arg begin = build_program(c, first, names), end = build_program(c, last, names);
  return build_program(c, "cat([a, b, c], d)", {{"a", begin}, {"b", center}, {"c", end}, {"d", dim}});
}

/// The dimensions asked for, counted from 0; all of them when the call names none.
Sizes gradient_dims(DecomposeCall& c) {
  std::size_t rank = c.tensor("self").dim();
  Sizes dims;
  if (c.has("dim")) {
    for (std::int64_t d : c.arg("dim").get<ArgList>() ? c.integers("dim") : Sizes{c.integer("dim")})
      dims.push_back(static_cast<std::int64_t>(wrap_dim(d, rank)));
  } else {
    for (std::size_t d = 0; d < rank; ++d) dims.push_back(static_cast<std::int64_t>(d));
  }
  return dims;
}

Arg gradient(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  std::int64_t order = c.integer("edge_order");
  if (order != 1 && order != 2) fail("torch.gradient only supports edge_order=1 and edge_order=2.");
  Sizes dims = gradient_dims(c);
  if (self.sizes.empty() && !dims.empty()) fail("torch.gradient: the tensor has no dimensions");
  for (std::int64_t d : dims) {
    SymExpr size = self.sizes.at(static_cast<std::size_t>(d));
    if (!checked(c, sym_le(order + 1, size), "gradient"))
      fail("torch.gradient expected each dimension size to be at least edge_order+1");
  }
  std::vector<Arg> spacing;
  if (c.schema.index_of("spacing") >= 0 && c.has("spacing")) {
    const ArgList* list = c.arg("spacing").get<ArgList>();
    spacing = list ? list->items : std::vector<Arg>(dims.size(), c.arg("spacing"));
    if (spacing.size() != dims.size())
      fail(
          fmt::format("torch.gradient expected spacing to be unspecified, a scalar, or a list of length {}, but got "
                      "a list of length {}",
                      dims.size(), spacing.size()));
  }
  std::vector<Arg> out;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Arg step = spacing.empty() ? Arg(1.0) : spacing[i];
    if (step.node() && step.node()->meta.tensor()) {
      out.push_back(uneven_gradient(c, dims[i], step));
      continue;
    }
    auto* real = step.get<double>();
    auto* whole = step.get<std::int64_t>();
    if (!real && !whole) fail_unsupported("gradient with a spacing that is not a real number");
    out.push_back(even_gradient(c, dims[i], real ? *real : static_cast<double>(*whole)));
  }
  return Arg::list(std::move(out));
}

}  // namespace

void register_gradient_composites(OpTable& t) {
  for (const char* overload :
       {"scalarint", "scalararray", "array", "scalarrayint", "scalarrayarray", "tensorarrayint", "tensorarray"})
    t.add(fmt::format("aten.gradient.{}", overload), {.decompose = gradient});
}

}  // namespace partita
