// einsum: permutes the operands to a common list of dimensions, then contracts pairs of them with batched matrix
// products (aten/src/ATen/native/Linear.cpp).
#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

constexpr std::size_t label_count = 52;
constexpr std::size_t ellipsis = 52;  ///< the label number of "..."

std::size_t label_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return static_cast<std::size_t>(letter - 'A');
  if (letter >= 'a' && letter <= 'z') return static_cast<std::size_t>(letter - 'a') + 26;
  fail(fmt::format("einsum(): invalid subscript given, subscripts must be in [a-zA-Z], but got '{}'", letter));
}
char letter_of(std::size_t label) {
  return static_cast<char>(label < 26 ? 'A' + label : 'a' + (label - 26));
}

std::vector<std::size_t> parse_subscripts(std::string_view text) {
  std::vector<std::size_t> labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] != '.') {
      labels.push_back(label_of(text[i]));
      continue;
    }
    if (!text.substr(i).starts_with("...")) fail("einsum(): found '.' that is not part of any ellipsis");
    if (std::find(labels.begin(), labels.end(), ellipsis) != labels.end())
      fail("einsum(): found '.' for which an ellipsis was already found");
    labels.push_back(ellipsis);
    i += 2;
  }
  return labels;
}

/// The common dimensions of all operands: first those of the result, then those that are summed.
struct Plan {
  std::vector<std::vector<std::size_t>> operands;  ///< labels of each operand's dimensions
  std::array<std::int64_t, label_count> place;     ///< a label's position among the common dimensions; -1: not used
  std::size_t ellipsis_dims = 0, ellipsis_place = 0, output_dims = 0, all_dims = 0;
};

void place_output(Plan& plan, std::string_view equation, std::size_t arrow,
                  const std::array<std::size_t, label_count>& uses) {
  std::size_t next = 0;
  bool shows_ellipsis = false;
  if (arrow == std::string_view::npos) {
    // Without an arrow the result has the ellipsis first, then each label that occurs once, in alphabetical order.
    next = plan.ellipsis_dims;
    shows_ellipsis = true;
    for (std::size_t l = 0; l < label_count; ++l)
      if (uses[l] == 1) plan.place[l] = static_cast<std::int64_t>(next++);
  } else {
    for (std::size_t l : parse_subscripts(equation.substr(arrow + 2))) {
      if (l == ellipsis) {
        plan.ellipsis_place = next;
        next += plan.ellipsis_dims;
        shows_ellipsis = true;
        continue;
      }
      if (plan.place[l] >= 0)
        fail(fmt::format("einsum(): output subscript {} appears more than once in the output", letter_of(l)));
      if (uses[l] == 0)
        fail(fmt::format("einsum(): output subscript {} does not appear in the equation for any input operand",
                         letter_of(l)));
      plan.place[l] = static_cast<std::int64_t>(next++);
    }
  }
  plan.output_dims = next;
  if (!shows_ellipsis) {
    plan.ellipsis_place = next;
    next += plan.ellipsis_dims;
  }
  for (std::size_t l = 0; l < label_count; ++l)
    if (uses[l] > 0 && plan.place[l] < 0) plan.place[l] = static_cast<std::int64_t>(next++);
  plan.all_dims = next;
}

Plan read_equation(std::string_view equation, const std::vector<Node*>& operands) {
  Plan plan;
  plan.place.fill(-1);
  std::size_t arrow = equation.find("->");
  std::string_view inputs = equation.substr(0, arrow);
  for (std::size_t at = 0; at != std::string_view::npos;) {
    std::size_t comma = inputs.find(',', at);
    plan.operands.push_back(parse_subscripts(inputs.substr(at, comma == std::string_view::npos ? comma : comma - at)));
    at = comma == std::string_view::npos ? comma : comma + 1;
  }
  if (plan.operands.size() != operands.size())
    fail(fmt::format("einsum(): {} operands were provided than specified in the equation",
                     plan.operands.size() < operands.size() ? "more" : "fewer"));
  std::array<std::size_t, label_count> uses = {};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::size_t rank = Builder::tensor(operands[i]).dim(), named = 0;
    for (std::size_t l : plan.operands[i])
      if (l != ellipsis) ++named, ++uses[l];
    bool open = named < plan.operands[i].size();
    if (open ? named > rank : named != rank)
      fail(fmt::format(
          "einsum(): the number of subscripts in the equation ({}) {} the number of dimensions ({}) for "
          "operand {}{}",
          named, open ? "is more than" : "does not match", rank, i, open ? "" : " and no ellipsis was given"));
    if (open) plan.ellipsis_dims = std::max(plan.ellipsis_dims, rank - named);
  }
  place_output(plan, equation, arrow, uses);
  return plan;
}

class Contraction {
 public:
  Contraction(DecomposeCall& call, Plan plan)
      : call_(call), b_(call.build), plan_(std::move(plan)), sizes_(plan_.all_dims, 1), uses_(plan_.all_dims, 0) {}

  /// Brings an operand to the plan's dimensions: takes the diagonal of repeated labels, gives missing labels size 1,
  /// permutes.
  void add(std::size_t index, Node* x) {
    std::vector<std::int64_t> order(plan_.all_dims, -1);
    std::int64_t dim = 0;
    for (std::size_t l : plan_.operands[index]) {
      if (l == ellipsis) {
        std::size_t covered =
            b_.tensor(call_.arg("tensors").get<ArgList>()->items[index]).dim() + 1 - plan_.operands[index].size();
        for (std::size_t j = plan_.ellipsis_dims - covered; j < plan_.ellipsis_dims; ++j) {
          note_size(plan_.ellipsis_place + j, x, dim, index);
          order[plan_.ellipsis_place + j] = dim++;
        }
        continue;
      }
      auto place = static_cast<std::size_t>(plan_.place[l]);
      if (order[place] < 0) {
        note_size(place, x, dim, index);
        order[place] = dim++;
        continue;
      }
      const SymList& sizes = b_.tensor(x).sizes;
      if (!call_.test(sym_eq(sizes[static_cast<std::size_t>(dim)], sizes[static_cast<std::size_t>(order[place])]),
                      "einsum"))
        fail(fmt::format("einsum(): subscript {} is repeated for operand {} but the sizes don't match", letter_of(l),
                         index));
      x = b_.call("aten.diagonal.default", {x, 0, order[place], dim});
      x = b_.call("aten.movedim.int", {x, -1, order[place]});
    }
    for (std::int64_t& d : order) {
      if (d >= 0) continue;
      x = b_.call("aten.unsqueeze.default", {x, dim});
      d = dim++;
    }
    operands_.push_back(b_.call("aten.permute.default", {x, list_of(order)}));
  }

  Node* run() {
    std::size_t count = operands_.size();
    bool directed = call_.has("path");
    Sizes path = directed ? call_.integers("path") : Sizes();
    if (directed && path.size() != (count == 1 ? 1 : 2 * (count - 1)))
      fail("einsum(): expected contract path given in path parameter to have 2 elements for each contraction");
    for (std::size_t step = 0; operands_.size() > 1; ++step) {
      std::int64_t i = directed ? path[2 * step] : 0, j = directed ? path[2 * step + 1] : 1;
      if (j < i) std::swap(i, j);
      if (i == j || i < 0 || j >= static_cast<std::int64_t>(operands_.size()))
        fail("einsum(): invalid contraction path");
      Node *left = operands_[static_cast<std::size_t>(i)], *right = operands_[static_cast<std::size_t>(j)];
      operands_.erase(operands_.begin() + j);
      operands_.erase(operands_.begin() + i);
      Node* product = contract(left, right);
      if (directed)
        operands_.push_back(product);
      else
        operands_.push_front(product);
    }
    return drop_summed(operands_[0], count);
  }

 private:
  bool is_one(Node* x, std::size_t dim) { return !call_.test(sym_ne(b_.tensor(x).sizes[dim], 1), "einsum"); }

  void note_size(std::size_t place, Node* x, std::int64_t dim, std::size_t operand) {
    SymExpr size = b_.tensor(x).sizes[static_cast<std::size_t>(dim)];
    if (is_one(x, static_cast<std::size_t>(dim))) return;
    if (!sizes_[place].is(1) && !call_.test(sym_eq(sizes_[place], size), "einsum"))
      fail(
          fmt::format("einsum(): a subscript has size {} for operand {} which does not broadcast with previously seen "
                      "size {}",
                      size.str(), operand, sizes_[place].str()));
    sizes_[place] = size;
    ++uses_[place];
  }

  /// Multiplies two operands. Sums over the dimensions that no remaining operand has.
  Node* contract(Node* left, Node* right) {
    std::vector<std::int64_t> both, left_only, right_only;
    for (std::size_t d = plan_.output_dims; d < plan_.all_dims; ++d) {
      bool in_left = !is_one(left, d), in_right = !is_one(right, d);
      auto dim = static_cast<std::int64_t>(d);
      if (in_left && in_right) {
        if (--uses_[d] != 1) continue;
        both.push_back(dim);
        uses_[d] = 0;
      } else if (uses_[d] == 1 && (in_left || in_right)) {
        (in_left ? left_only : right_only).push_back(dim);
        uses_[d] = 0;
      }
    }
    if (!left_only.empty()) left = b_.call("aten.sum.dim_IntList", {left, list_of(left_only), true});
    if (!right_only.empty()) right = b_.call("aten.sum.dim_IntList", {right, list_of(right_only), true});
    return sumproduct_pair(left, right, both);
  }

  /// sum(left * right, summed, keepdim=True) as one batched matrix product. Dimensions that both have and that are not
  /// summed are the batch; those of the left alone are rows, those of the right alone are columns.
  Node* sumproduct_pair(Node* left, Node* right, const std::vector<std::int64_t>& summed) {
    if (summed.empty()) return b_.call("aten.mul.Tensor", {left, right});
    std::vector<std::int64_t> batch, rows, columns;
    SymExpr batch_size = 1, row_size = 1, column_size = 1, sum_size = 1;
    for (std::size_t d = 0; d < plan_.all_dims; ++d) {
      bool in_left = !is_one(left, d), in_right = !is_one(right, d);
      auto dim = static_cast<std::int64_t>(d);
      SymExpr size = b_.tensor(in_left ? left : right).sizes[d];
      if (std::find(summed.begin(), summed.end(), dim) != summed.end()) {
        sum_size = sum_size * size;
      } else if (in_left && in_right) {
        batch.push_back(dim);
        batch_size = batch_size * size;
      } else if (in_left) {
        rows.push_back(dim);
        row_size = row_size * size;
      } else {
        columns.push_back(dim);
        column_size = column_size * size;
      }
    }
    // The operand whose dimensions come first in the result is the left one, so that the result is dense.
    if (!rows.empty() && !columns.empty() && columns.back() < rows.front()) {
      std::swap(left, right);
      std::swap(rows, columns);
      std::swap(row_size, column_size);
    }
    auto joined = [](std::initializer_list<const std::vector<std::int64_t>*> parts) {
      std::vector<std::int64_t> out;
      for (auto* part : parts) out.insert(out.end(), part->begin(), part->end());
      return out;
    };
    SymList sizes;
    for (std::int64_t d : joined({&batch, &rows})) sizes.push_back(b_.tensor(left).sizes[static_cast<std::size_t>(d)]);
    sizes.insert(sizes.end(), summed.size(), SymExpr(1));
    for (std::int64_t d : columns) sizes.push_back(b_.tensor(right).sizes[static_cast<std::size_t>(d)]);
    std::vector<std::int64_t> arranged = joined({&batch, &rows, &summed, &columns}), back(plan_.all_dims);
    for (std::size_t i = 0; i < arranged.size(); ++i)
      back[static_cast<std::size_t>(arranged[i])] = static_cast<std::int64_t>(i);
    left = b_.call("aten.permute.default", {left, list_of(arranged)});
    left = reshape(b_, left, {batch_size, row_size, sum_size});
    right = b_.call("aten.permute.default", {right, list_of(joined({&batch, &summed, &columns, &rows}))});
    right = reshape(b_, right, {batch_size, sum_size, column_size});
    Node* product = b_.call("aten.bmm.default", {left, right});
    product = b_.call("aten.view.default", {product, b_.sizes(sizes)});
    return b_.call("aten.permute.default", {product, list_of(back)});
  }

  Node* drop_summed(Node* x, std::size_t operands) {
    if (plan_.all_dims == plan_.output_dims) return x;
    if (operands == 1) {
      std::vector<std::int64_t> dims(plan_.all_dims - plan_.output_dims);
      std::iota(dims.begin(), dims.end(), static_cast<std::int64_t>(plan_.output_dims));
      return b_.call("aten.sum.dim_IntList", {x, list_of(dims)});
    }
    SymList sizes = b_.tensor(x).sizes;
    sizes.resize(plan_.output_dims, SymExpr(1));
    return b_.call("aten.view.default", {x, b_.sizes(sizes)});
  }

  DecomposeCall& call_;
  Builder& b_;
  Plan plan_;
  SymList sizes_;                  ///< broadcast size of each dimension over the operands added so far
  std::vector<std::size_t> uses_;  ///< for each dimension, the number of remaining operands whose size is not 1
  std::deque<Node*> operands_;
};

Arg einsum(DecomposeCall& c) {
  std::vector<Node*> operands = tensor_list(c, "tensors");
  if (operands.empty()) fail("einsum(): must provide at least one operand");
  Contraction contraction(c, read_equation(c.string("equation"), operands));
  for (std::size_t i = 0; i < operands.size(); ++i) contraction.add(i, operands[i]);
  return contraction.run();
}

}  // namespace

void register_einsum(OpTable& t) {
  t.add("aten.einsum.default", {.decompose = einsum, .family = Family::Matmul});
}

}  // namespace partita
