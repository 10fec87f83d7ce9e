// c10d_functional, whose calls list the ranks of their group where later ones name it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// The name of a group that has none but its ranks and tag; see Collective::group.
std::string name_by_ranks(const DecomposeCall& c) {
  const std::string tag = c.string("tag"), ranks = fmt::format("[{}]", fmt::join(c.integers("ranks"), ", "));
  return tag.empty() ? ranks : ranks + " " + tag;
}

/// Equal parts for all ranks, where a call gives no split sizes.
Arg equal_splits(DecomposeCall& c) {
  const std::int64_t n = c.integer("group_size");
  if (n < 1) fail(fmt::format("group_size is {}, but a group has at least one rank", n));
  const TensorMeta& input = c.tensor("input");
  if (input.sizes.empty()) fail("an input without dimensions cannot be split along dim 0");
  return c.build.sizes(SymList(static_cast<std::size_t>(n), sym_floordiv(input.sizes[0], n)));
}

/// The same call of _c10d_functional: what comes before the tag, the size of the group if it takes one, and the name.
Arg by_name(DecomposeCall& c) {
  const std::string now = "_" + c.schema.name;
  const Schema& schema = *find_schema(std::string_view(now));
  if (c.schema.index_of("ranks") < 0) return c.build.call(now, c.args);
  Args args(c.args.begin(), c.args.begin() + c.schema.index_of("tag"));
  if (c.schema.index_of("input_split_sizes") >= 0) {
    const bool out = c.has("output_split_sizes"), in = c.has("input_split_sizes");
    if (out != in)
      fail("output_split_sizes and input_split_sizes must either be specified together or both set to None");
    if (!out) args[1] = args[2] = equal_splits(c);
  }
  if (schema.index_of("group_size") >= 0) args.push_back(c.arg("group_size"));
  args.push_back(name_by_ranks(c));
  return c.build.call(now, std::move(args));
}

}  // namespace

void register_collective_older(OpTable& t) {
  t.default_family = Family::Collective;
  for (const char* name : {"all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_reduce",
                           "all_reduce_coalesced", "all_to_all_single", "batch_p2p_ops", "broadcast", "irecv", "isend",
                           "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced"})
    t.add(fmt::format("c10d_functional.{}.default", name),
          {.decompose = by_name, .collective = CollectivePart::Starts});
  t.add("c10d_functional.wait_tensor.default", {.decompose = by_name, .collective = CollectivePart::Waits});
}

}  // namespace partita
