// Collectives: what ranks of a job exchange. A call starts one and gives tensors that are filled later; wait_tensor
// waits until they are. Metas are those of torch/distributed/_functional_collectives.py.
#include "core/ops/families/collectives.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/ops/kernels/outputs.h"
#include "core/ops/record/communicator.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/values.h"

namespace partita {

namespace {

using kernels::allocate;
using kernels::allocate_all;
using Kind = Collective::Kind;

std::int64_t group_size(const FakeCall& c) {
  const std::int64_t n = c.integer("group_size");
  if (n < 1) fail(fmt::format("group_size is {}, but a group has at least one rank", n));
  return n;
}

TensorMeta gathered(const FakeCall& c, const TensorMeta& input) {
  SymList sizes = input.sizes;
  if (sizes.empty()) sizes.push_back(1);
  sizes[0] = sizes[0] * group_size(c);
  return new_like(input, sizes);
}

TensorMeta scattered(const FakeCall& c, const TensorMeta& input) {
  const std::int64_t n = group_size(c);
  if (input.sizes.empty()) fail("an input without dimensions cannot be scattered along dim 0");
  if (!checked(c, sym_eq(sym_mod(input.sizes[0], n), 0), "ranks get equal parts of dim 0"))
    fail(fmt::format("dim 0 of the input has size {}, which group_size {} does not divide", input.sizes[0].str(), n));
  SymList sizes = input.sizes;
  sizes[0] = sym_floordiv(sizes[0], n);
  return new_like(input, sizes);
}

template <TensorMeta (*fake)(const FakeCall&, const TensorMeta&)>
Meta of_input(FakeCall& c) {
  return fake(c, c.tensor("input"));
}
template <TensorMeta (*fake)(const FakeCall&, const TensorMeta&)>
Meta of_inputs(FakeCall& c) {
  MetaTuple out;
  for (const TensorMeta* t : c.tensors("inputs")) out.items.push_back(fake(c, *t));
  return out;
}
TensorMeta row_major(const FakeCall&, const TensorMeta& input) {
  return new_like(input, input.sizes);
}
TensorMeta preserved(const FakeCall& c, const TensorMeta& input) {
  return like_preserving(input, c.shapes);
}
TensorMeta itself(const FakeCall&, const TensorMeta& input) {
  return input;
}

SymExpr sum_of_splits(const FakeCall& c, std::string_view name) {
  SymExpr sum = 0;
  for (const SymExpr& rows : c.syms(name)) {
    if (!checked(c, sym_le(0, rows), "split sizes are not negative"))
      fail(fmt::format("{} has {}, which is negative", name, rows.str()));
    sum = sum + rows;
  }
  return sum;
}

Meta fake_all_to_all(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  if (input.sizes.empty()) fail("an input without dimensions cannot be split along dim 0");
  const std::size_t to = c.syms("input_split_sizes").size(), from = c.syms("output_split_sizes").size();
  if (to != from)
    fail(fmt::format("input_split_sizes has {} numbers and output_split_sizes {}; both need one for each rank", to,
                     from));
  const SymExpr sum = sum_of_splits(c, "input_split_sizes");
  if (!checked(c, sym_eq(sum, input.sizes[0]), "split sizes sum to dim 0"))
    fail(fmt::format("input_split_sizes sum to {}, but dim 0 of the input has size {}", sum.str(),
                     input.sizes[0].str()));
  SymList sizes = input.sizes;
  sizes[0] = sum_of_splits(c, "output_split_sizes");
  return new_like(input, sizes);
}

/// What a tensor argument named `tensor` gets back where nothing comes: an empty tensor to wait for.
TensorMeta nothing_like(const TensorMeta& t) {
  return new_like(t, {0});
}
Meta fake_send(FakeCall& c) {
  return nothing_like(c.tensor("tensor"));
}
Meta fake_of_tensor(FakeCall& c) {
  return preserved(c, c.tensor("tensor"));
}
Meta fake_wrap(FakeCall& c) {
  return preserved(c, c.tensor("input"));
}

/// The strings of a str[] argument.
template <class Call>
std::vector<std::string> strings(const Call& c, std::string_view name) {
  std::vector<std::string> out;
  const auto add = [&](const auto& items) {
    for (const auto& item : items) {
      const auto* text = item.template get<std::string>();
      if (!text) fail(std::string(name) + " must be a list of strings");
      out.push_back(*text);
    }
  };
  if constexpr (std::is_same_v<Call, EvalCall>) {
    if (const auto* list = c.arg(name).template get<ValueList>()) add(*list);
  } else {
    if (const auto* list = c.arg(name).template get<ArgList>()) add(list->items);
  }
  return out;
}

/// batch_p2p_ops: for each tensor whether it is received.
std::vector<bool> received(const auto& c) {
  const std::vector<std::string> ops = strings(c, "op_list");
  const std::size_t n = c.tensors("tensors").size();
  if (ops.size() != n || c.integers("peer_list").size() != n || c.integers("tag_list").size() != n)
    fail(fmt::format("op_list, peer_list and tag_list need one item for each of the {} tensors", n));
  std::vector<bool> out;
  for (const std::string& op : ops) {
    if (op != "isend" && op != "irecv") fail("op_list has '" + op + "'; it may have isend and irecv");
    out.push_back(op == "irecv");
  }
  return out;
}
Meta fake_batch(FakeCall& c) {
  const std::vector<bool> receives = received(c);
  const auto tensors = c.tensors("tensors");
  MetaTuple out;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    out.items.push_back(receives[i] ? preserved(c, *tensors[i]) : nothing_like(*tensors[i]));
  return out;
}

Communicator& communicator(const EvalCall& c) {
  if (c.context.communicator) return *c.context.communicator;
  fail_unsupported(
      c.schema.name +
      " without the other ranks; run all ranks with --ranks, or stand in for the others with --ranks fake");
}

std::string group_of(const EvalCall& c) {
  if (const auto* name = c.arg("group_name").get<std::string>()) return *name;
  fail_unsupported(c.schema.name + " of a group that is an object; it must be the group's name");
}

std::string reduction(const EvalCall& c) {
  constexpr std::array<std::string_view, 8> known = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
  std::string name = c.string("reduce_op");
  if (std::ranges::find(known, name) == known.end()) fail("Unrecognized reduce_op: " + name);
  return name;
}

/// The exchange that a call starts.
Collective collective(const EvalCall& c, Kind kind, std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
  Collective out;
  out.kind = kind;
  out.group = group_of(c);
  if (c.schema.index_of("group_size") >= 0) out.group_size = c.integer("group_size");
  if (c.schema.index_of("reduce_op") >= 0) out.reduce_op = reduction(c);
  if (kind == Kind::Broadcast) out.root = c.integer("src");
  if (c.schema.index_of("input_split_sizes") >= 0) {
    out.input_splits = c.integers("input_split_sizes");
    out.output_splits = c.integers("output_split_sizes");
  }
  out.inputs = std::move(inputs);
  out.outputs = std::move(outputs);
  out.node = c.context.node;
  return out;
}

std::vector<Tensor> list_of_inputs(const EvalCall& c) {
  std::vector<Tensor> out;
  for (const Tensor* t : c.tensors("inputs")) out.push_back(*t);
  return out;
}

ValueList as_list(const std::vector<Tensor>& tensors) {
  return ValueList(tensors.begin(), tensors.end());
}

template <Kind kind, Meta (*fake)(FakeCall&)>
Value eval_one(EvalCall& c) {
  const Tensor out = allocate(c, fake);
  communicator(c).start(collective(c, kind, {c.tensor("input")}, {out}));
  return out;
}
template <Kind kind, Meta (*fake)(FakeCall&)>
Value eval_several(EvalCall& c) {
  const std::vector<Tensor> out = allocate_all(c, fake);
  communicator(c).start(collective(c, kind, list_of_inputs(c), out));
  return as_list(out);
}

/// PyTorch's process groups take only such tensors, too.
void check_written(const EvalCall& c, const Tensor& t) {
  if (!t.is_contiguous()) fail(c.schema.name + ": the tensor that it writes must be contiguous");
}

template <Kind kind>
Value eval_in_place(EvalCall& c) {
  Communicator& others = communicator(c);
  const Tensor& self = c.tensor("input");
  check_written(c, self);
  others.start(collective(c, kind, {self}, {self}));
  return self;
}
Value eval_coalesced_in_place(EvalCall& c) {
  Communicator& others = communicator(c);
  const std::vector<Tensor> written = list_of_inputs(c);
  for (const Tensor& t : written) check_written(c, t);
  others.start(collective(c, Kind::AllReduce, written, written));
  return as_list(written);
}
template <Kind kind>
Value eval_out(EvalCall& c) {
  Communicator& others = communicator(c);
  const Tensor& out = c.tensor("out");
  check_written(c, out);
  others.start(collective(c, kind, {c.tensor("input")}, {out}));
  return out;
}
/// The result has the memory of `out`, which must have the sizes and dtype that the functional form gives.
template <TensorMeta (*fake)(const FakeCall&, const TensorMeta&)>
Meta fake_out(FakeCall& c) {
  const TensorMeta &out = c.tensor("out"), made = fake(c, c.tensor("input"));
  bool fits = out.dtype == made.dtype && out.sizes.size() == made.sizes.size();
  for (std::size_t i = 0; fits && i < out.sizes.size(); ++i)
    fits = checked_equal(c, out.sizes[i], made.sizes[i], "sizes of out");
  if (!fits)
    fail(fmt::format("out is {}[{}], but the result is {}[{}]", torch_name(out.dtype), join(out.sizes),
                     torch_name(made.dtype), join(made.sizes)));
  return out;
}

Collective point_to_point(const EvalCall& c, bool receives, const Tensor& tensor, Tensor out, std::int64_t peer,
                          std::int64_t tag) {
  std::vector<Tensor> sent;
  if (receives)
    out.copy_from(tensor);  // what PyTorch leaves where nothing is received
  else
    sent.push_back(tensor);
  Collective started = collective(c, receives ? Kind::Receive : Kind::Send, std::move(sent), {std::move(out)});
  started.root = peer;
  started.tag = tag;
  return started;
}
template <bool receives>
Value eval_point_to_point(EvalCall& c) {
  Communicator& others = communicator(c);
  Tensor out = allocate(c, receives ? fake_of_tensor : fake_send);
  others.start(
      point_to_point(c, receives, c.tensor("tensor"), out, c.integer(receives ? "src" : "dst"), c.integer("tag")));
  return out;
}
Value eval_batch(EvalCall& c) {
  Communicator& others = communicator(c);
  const std::vector<bool> receives = received(c);
  const Sizes peers = c.integers("peer_list"), tags = c.integers("tag_list");
  const auto tensors = c.tensors("tensors");
  const std::vector<Tensor> out = allocate_all(c, fake_batch);
  for (std::size_t i = 0; i < out.size(); ++i)
    others.start(point_to_point(c, receives[i], *tensors[i], out[i], peers[i], tags[i]));
  return as_list(out);
}

Value eval_wait(EvalCall& c) {
  const Tensor& t = c.tensor(c.schema.args[0].name);
  if (c.context.communicator) c.context.communicator->wait(t);
  return t;
}
Value eval_wrap(EvalCall& c) {
  return c.tensor("input");
}

/// The parts of dim shard_dim go to the ranks in turn; what they send is put side by side along gather_dim. The call
/// does not say how many ranks there are, so its result's sizes are known only when it runs.
Value eval_shard_dim(EvalCall& c) {
  Communicator& others = communicator(c);
  const std::int64_t n = others.group_size(group_of(c));
  if (n < 1) fail_unsupported(c.schema.name + " of group " + group_of(c) + ", whose size is not known");
  const Tensor& input = c.tensor("input");
  const auto dim = [&](const char* name) {
    const std::int64_t d = c.integer(name), rank = input.dim();
    if (d < -rank || d >= rank) fail(fmt::format("{} is {}, but the input has {} dimensions", name, d, rank));
    return static_cast<std::size_t>(d < 0 ? d + rank : d);
  };
  const std::size_t gather = dim("gather_dim"), shard = dim("shard_dim");
  if (gather == shard) fail_unsupported(c.schema.name + " along one dimension");
  if (input.sizes[shard] % n != 0)
    fail(fmt::format("dim {} of the input has size {}, which the {} ranks of the group do not divide", shard,
                     input.sizes[shard], n));
  Sizes part = input.sizes, whole = input.sizes;
  whole[gather] *= n;
  whole[shard] /= n;
  part[shard] /= n;
  Sizes packed = part;
  packed.insert(packed.begin(), n);
  const DType dtype = input.dtype;
  const Tensor sent = kernels::empty(dtype, packed), got = kernels::empty(dtype, packed);
  Tensor out = kernels::empty(dtype, whole);
  const Sizes inner(sent.strides.begin() + 1, sent.strides.end());
  for (std::int64_t i = 0; i < n; ++i)
    sent.view_as(part, inner, i * sent.strides[0])
        .copy_from(input.view_as(part, input.strides, input.offset + i * part[shard] * input.strides[shard]));
  Collective started = collective(c, Kind::AllToAll, {sent}, {got});
  started.group_size = n;
  others.start(std::move(started));
  others.wait(got);
  for (std::int64_t i = 0; i < n; ++i)
    out.view_as(part, out.strides, i * input.sizes[gather] * out.strides[gather])
        .copy_from(got.view_as(part, inner, i * got.strides[0]));
  return out;
}

void add_started(OpTable& t, std::string_view name, Meta (*fake)(FakeCall&), Value (*eval)(EvalCall&),
                 OpRecord more = {}) {
  more.collective = CollectivePart::Starts;
  t.add(name, fake, eval, more.autograd.derivative, more);
}

}  // namespace

void register_collectives(OpTable& t) {
  t.default_family = Family::Collective;
  // PyTorch has no gradient for these, and lets none through.
  const OpRecord no_gradient{.autograd = {.derivative = {{"input", "None"}}}};
  const OpRecord no_gradient_of_tensor{.autograd = {.derivative = {{"tensor", "None"}}}};
  constexpr auto *fake_reduce = of_input<row_major>, *fake_gather = of_input<gathered>,
                 *fake_scatter = of_input<scattered>, *fake_broadcast = of_input<preserved>,
                 *fake_reduces = of_inputs<preserved>, *fake_gathers = of_inputs<gathered>,
                 *fake_scatters = of_inputs<scattered>;
  const auto gradient = [](auto function) { return OpRecord{.autograd = {.gradient = function}}; };
  add_started(t, "_c10d_functional.all_reduce.default", fake_reduce, eval_one<Kind::AllReduce, fake_reduce>,
              gradient(all_reduce_gradient));
  add_started(t, "_c10d_functional.all_reduce_.default", of_input<itself>, eval_in_place<Kind::AllReduce>);
  add_started(t, "_c10d_functional.all_reduce_coalesced.default", fake_reduces,
              eval_several<Kind::AllReduce, fake_reduces>, gradient(all_reduce_coalesced_gradient));
  add_started(t, "_c10d_functional.all_reduce_coalesced_.default", of_inputs<itself>, eval_coalesced_in_place);
  for (const std::string library : {"_c10d_functional.", "_c10d_functional_autograd."}) {
    add_started(t, library + "all_gather_into_tensor.default", fake_gather, eval_one<Kind::AllGather, fake_gather>,
                gradient(all_gather_gradient));
    add_started(t, library + "reduce_scatter_tensor.default", fake_scatter, eval_one<Kind::ReduceScatter, fake_scatter>,
                gradient(reduce_scatter_gradient));
    add_started(t, library + "all_to_all_single.default", fake_all_to_all, eval_one<Kind::AllToAll, fake_all_to_all>,
                gradient(all_to_all_gradient));
  }
  add_started(t, "_c10d_functional.all_gather_into_tensor_out.default", fake_out<gathered>, eval_out<Kind::AllGather>);
  add_started(t, "_c10d_functional.all_gather_into_tensor_coalesced.default", fake_gathers,
              eval_several<Kind::AllGather, fake_gathers>, gradient(all_gather_coalesced_gradient));
  add_started(t, "_c10d_functional.reduce_scatter_tensor_out.default", fake_out<scattered>,
              eval_out<Kind::ReduceScatter>);
  add_started(t, "_c10d_functional.reduce_scatter_tensor_coalesced.default", fake_scatters,
              eval_several<Kind::ReduceScatter, fake_scatters>, gradient(reduce_scatter_coalesced_gradient));
  add_started(t, "_c10d_functional.broadcast.default", fake_broadcast, eval_one<Kind::Broadcast, fake_broadcast>,
              no_gradient);
  add_started(t, "_c10d_functional.broadcast_.default", of_input<itself>, eval_in_place<Kind::Broadcast>);
  add_started(t, "_c10d_functional.isend.default", fake_send, eval_point_to_point<false>, no_gradient_of_tensor);
  add_started(t, "_c10d_functional.irecv.default", fake_of_tensor, eval_point_to_point<true>, no_gradient_of_tensor);
  add_started(t, "_c10d_functional.batch_p2p_ops.default", fake_batch, eval_batch);
  t.add("_c10d_functional.wait_tensor.default", fake_of_tensor, eval_wait, {{"tensor", "grad"}},
        {.collective = CollectivePart::Waits});
  t.add("_c10d_functional._wrap_tensor_autograd.default", fake_wrap, eval_wrap, {{"input", "grad"}},
        {.collective = CollectivePart::Waits});
  add_started(t, "_dtensor.shard_dim_alltoall.default", nullptr, eval_shard_dim, no_gradient);
}

}  // namespace partita
