// Casts arguments inside autocast regions by PyTorch's lists for the CPU, and infers anew the dtypes of what reads the
// results. Also inlines the sub graphs of autocast, no_grad, checkpoints and other wrappers.
#include "core/ops/facts/autocast.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/record/composite_call.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

enum class Policy : unsigned char { Lower, Single, Widest };

/// What PyTorch 2.13 registers for AutocastCPU: names of operators with all their overloads, whether these have records
/// or not. `partita ops NAME` prints it with the schema.
constexpr std::string_view lower =
    "_addmm_activation _convolution _native_multi_head_attention addbmm addmm baddbmm bmm conv1d conv2d conv3d "
    "conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot linear matmul mkldnn_rnn_layer mm "
    "prelu scaled_dot_product_attention";
constexpr std::string_view single =
    "_grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d "
    "binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve "
    "cosine_embedding_loss cross_entropy_loss ctc_loss fake_quantize_per_tensor_affine fft_fft fft_fft2 fft_fftn "
    "fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn "
    "fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d grid_sampler_3d "
    "hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond "
    "linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex "
    "linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv "
    "linalg_tensorsolve lu_solve margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss "
    "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward nanquantile nll_loss nll_loss2d orgqr "
    "ormqr pinverse poisson_nll_loss polar prod qr quantile reflection_pad1d reflection_pad2d replication_pad1d "
    "replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss stft svd trace triangular_solve "
    "triplet_margin_loss view_as_complex";
constexpr std::string_view widest = "cat index_copy stack";

/// `name` without its namespace.
std::optional<Policy> policy_of(std::string_view name) {
  static const auto policies = [] {
    constexpr std::pair<std::string_view, Policy> lists[] = {
        {lower, Policy::Lower}, {single, Policy::Single}, {widest, Policy::Widest}};
    std::unordered_map<std::string_view, Policy> found;
    for (const auto& [names, policy] : lists)
      for (const auto word : std::views::split(names, ' '))
        found.emplace(std::string_view(word.begin(), word.end()), policy);
    return found;
  }();
  const auto it = policies.find(name);
  return it == policies.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Policy> policy_of(const Schema& schema) {
  constexpr std::string_view prefix = "aten.";
  const std::string_view name = schema.base;
  return name.starts_with(prefix) ? policy_of(name.substr(prefix.size())) : std::nullopt;
}

bool may_be_cast(const Node* n) {
  const TensorMeta* t = n->meta.tensor();
  return t && is_floating(t->dtype) && t->dtype != DType::Float64 && t->device == Device();
}

/// Of several tensors nothing is said.
bool same_dtype(const Meta& a, const Meta& b) {
  return a.tensor() && b.tensor() && a.tensor()->dtype == b.tensor()->dtype;
}

Diagnostic malformed(const Node& node, std::string what) {
  return unsupported("ops.autocast", node.name() + " " + std::move(what), place_of(node));
}

const Op* enter() {
  return Op::get(OpKind::Function, "torch.amp.autocast_mode._enter_autocast");
}
const Op* leave() {
  return Op::get(OpKind::Function, "torch.amp.autocast_mode._exit_autocast");
}

}  // namespace

std::string_view autocast_policy(const Schema& schema) {
  constexpr std::string_view names[] = {"lower_precision_fp", "fp32", "promote"};
  const auto policy = policy_of(schema);
  return policy ? names[static_cast<std::size_t>(*policy)] : std::string_view();
}

Result<Node*> AutocastRegions::follow(Node* node) {
  Node* next = node->next();
  if (node->is(enter())) {
    // (device, dtype or None, enabled, cache or None)
    const Args& args = node->args();
    const auto* device = args.empty() ? nullptr : args[0].get<std::string>();
    const auto* enabled = args.size() < 3 ? nullptr : args[2].get<bool>();
    if (!device || !enabled) return malformed(*node, "does not say which device's autocast it enters");
    const DType* dtype = args[1].get<DType>();
    if (*enabled && *device != "cpu")
      return malformed(*node, "enters autocast for " + *device + "; only the CPU's lists are known");
    // A region for another device changes nothing on this one.
    const Region outer = regions_.empty() ? Region() : regions_.back();
    const bool* caches = args.size() < 4 ? nullptr : args[3].get<bool>();
    regions_.push_back(*device == "cpu" ? Region{node, *enabled, dtype ? *dtype : DType::BFloat16, !caches || *caches}
                                        : Region{node, outer.enabled, outer.dtype, outer.caches});
    return next;
  }
  Node* begin = node->is(leave()) && !node->args().empty() ? node->args()[0].node() : nullptr;
  if (!begin || regions_.empty() || regions_.back().begin != begin)
    return malformed(*node, "does not end the innermost autocast region");
  regions_.pop_back();
  if (regions_.empty()) cached_.clear();
  node->graph().erase(node);
  if (begin->users().empty()) begin->graph().erase(begin);
  return next;
}

bool AutocastRegions::casts_parts(const Node& call) const {
  return enabled() && !done_.contains(&call) && is_composite(call.op());
}

/// The calls that a composite consists of got their metas before any of them was cast.
Status AutocastRegions::follow_dtypes(Node& call) {
  const bool reads = std::ranges::any_of(call.inputs(), [&](const Node* n) { return changed_.contains(n); });
  if (!reads || (call.op()->kind != OpKind::Torch && !call.is(Op::getitem()))) return {};
  TRY(Meta found, infer(call));
  if (same_dtype(call.meta, found)) return {};
  const bool needs = requires_grad(&call);
  call.meta = std::move(found);
  set_requires_grad(call, needs);
  changed_.insert(&call);
  return {};
}

/// _flex_attention_autocast_impl: queries, keys and values are cast, and nothing within.
Status AutocastRegions::enter_attention(Node& call) {
  const DType to = regions_.back().dtype;
  return catch_raised<void>([&]() -> Status {
    Builder build(call.graph(), &call, call.origin);
    Args args = call.args();
    for (std::size_t i = 0; i < std::min<std::size_t>(args.size(), 3); ++i)
      if (Node* n = args[i].node(); n && may_be_cast(n) && n->meta.tensor()->dtype != to)
        args[i] = build.call("aten._to_copy.default", {n}, {{"dtype", Arg(to)}});
    call.set_args(std::move(args), call.kwargs());
    Node* const begin = call.graph().create(enter(), {"cpu", to, false}, {}, {}, &call);
    call.graph().create(leave(), {begin}, {}, {}, call.next());
    TRY_DO(follow(begin));
    return {};
  });
}

Status AutocastRegions::cast_arguments(Node& call) {
  if (!enabled()) return {};
  if (is_flex_attention(call.op())) return enter_attention(call);
  if (done_.contains(&call)) return follow_dtypes(call);
  const bool aten = call.op()->kind == OpKind::Torch;
  const Schema* schema = aten ? find_schema(call.op()) : nullptr;
  auto policy = schema ? policy_of(*schema) : std::nullopt;
  // Products and convolutions take one dtype, which is asked for where a torch-level call of them is resolved.
  if (!aten && policy_of(std::string_view(call.op()->name).substr(call.op()->name.rfind('.') + 1)) == Policy::Lower)
    policy = Policy::Lower;
  if (!policy) return follow_dtypes(call);
  DType to = *policy == Policy::Single ? DType::Float32 : regions_.back().dtype;
  if (*policy == Policy::Widest)
    for (const Node* n : call.inputs())
      if (may_be_cast(n) && n->meta.tensor()->dtype == DType::Float32) to = DType::Float32;
  if (aten) done_.insert(&call);
  std::unordered_map<Node*, Node*> casts;
  return catch_raised<void>([&]() -> Status {
    Builder build(call.graph(), &call, call.origin);
    const auto cast = [&](Node* n) {
      if (!may_be_cast(n) || n->meta.tensor()->dtype == to || casts.contains(n)) return;
      // PyTorch casts a leaf that requires grad once in the outermost region.
      const bool leaf = n->is_placeholder() && requires_grad(n) && n->meta.tensor()->dtype == DType::Float32;
      Node* kept = nullptr;
      Node*& made = leaf && *policy == Policy::Lower && regions_.back().caches ? cached_[{n, to}] : kept;
      if (!made) made = build.call("aten._to_copy.default", {n}, {{"dtype", Arg(to)}});
      casts[n] = made;
    };
    // C++ evaluates the casts of a call's arguments from the last to the first.
    for (auto it = call.kwargs().rbegin(); it != call.kwargs().rend(); ++it) for_each_node(it->second, cast);
    for (auto it = call.args().rbegin(); it != call.args().rend(); ++it) for_each_node(*it, cast);
    if (casts.empty()) return follow_dtypes(call);
    for (const auto& [from, cast] : casts) call.replace_input(from, cast);
    if (!aten) return {};
    const bool needs = requires_grad(&call);
    TRY(Meta found, infer(call));
    if (!same_dtype(call.meta, found)) changed_.insert(&call);
    call.meta = std::move(found);
    set_requires_grad(call, needs);
    return {};
  });
}

void AutocastRegions::enter_sub_graphs(const Node& call) {
  if (!enabled()) return;
  for (const Node* input : call.inputs()) {
    Graph* const child = input->is(Op::get_attr()) ? call.graph().child(input->target) : nullptr;
    if (!child || !entered_.insert(child).second) continue;
    Node* first = child->first();
    while (first->is_placeholder()) first = first->next();
    Node* const begin = child->create(
        enter(), {"cpu", regions_.back().dtype, true, regions_.back().caches ? Arg() : Arg(false)}, {}, {}, first);
    child->create(leave(), {begin}, {}, {}, child->output());
  }
}

void AutocastRegions::replaced(const Node& call, const Node* made) {
  const bool done = done_.erase(&call) > 0, changed = changed_.erase(&call) > 0;
  for (; made != &call; made = made->next()) {
    if (done) done_.insert(made);
    if (changed) changed_.insert(made);
  }
}

namespace {

/// A name that neither a sub graph nor an attribute of the graph has.
std::string free_name(const Graph& graph, const std::string& wanted) {
  const auto taken = [&](const std::string& name) { return graph.child(name) || graph.attributes.contains(name); };
  std::string name = wanted;
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

/// Gives the graph what a get_attr of the body reads, and returns its name there.
std::string take_attribute(Graph& graph, const Graph& body, const std::string& target) {
  if (const Graph* child = body.child(target)) {
    std::string name = free_name(graph, target);
    graph.children.emplace_back(name, child->clone());
    return name;
  }
  const auto it = body.attributes.find(target);
  if (it == body.attributes.end()) return target;
  const auto same = graph.attributes.find(target);
  if (same != graph.attributes.end() && same->second.storage == it->second.storage) return target;
  std::string name = free_name(graph, target);
  graph.attributes.emplace(name, it->second);
  return name;
}

}  // namespace

Result<Arg> copy_body(const Node& call, const Graph& body, const std::vector<Arg>& operands, Node* before) {
  Graph& graph = call.graph();
  const std::vector<Node*> parameters = body.placeholders();
  if (parameters.size() != operands.size())
    return unsupported("ops.region", call.op()->name + " with another number of operands than its sub graph takes",
                       place_of(call));
  std::unordered_map<const Node*, Arg> copies;
  for (std::size_t i = 0; i < parameters.size(); ++i) copies.emplace(parameters[i], operands[i]);
  const auto copy_of = [&](Node* n) { return copies.at(n); };
  for (Node* inner : body) {
    if (inner->is_placeholder() || inner->is_output()) continue;
    Node* copy = graph.copy_node(*inner, copy_of, before);
    if (copy->is(Op::get_attr())) copy->target = take_attribute(graph, body, inner->target);
    copies.emplace(inner, copy);
  }
  // A sub graph may return one value that is not in a tuple.
  if (const Node* output = body.output(); output && output->args()[0].node()) return copy_of(output->args()[0].node());
  std::vector<Arg> results;
  for (const Arg& result : body.outputs()) results.push_back(map_nodes(result, copy_of));
  return Arg::list(std::move(results));
}

Result<Node*> inline_region(Node* call, Node* begin, const std::vector<Arg>& operands, const Graph& body) {
  Node* const previous = call->previous();
  TRY(const Arg results, copy_body(*call, body, operands, call));
  TRY_DO(replace_uses(*call, results));
  if (begin) return begin;
  Node* const first = previous ? previous->next() : call->graph().first();
  return first == call ? nullptr : first;
}

Result<Node*> inline_wrapper(Node* call, const ControlOp& op) {
  // invoke_subgraph has an identifier before the operands.
  const std::size_t first = op.kind == Control::InvokeSubgraph ? 2 : 1;
  TRY(const Graph* const body, region_graph(*call, 0));
  const Args args = call->args();
  std::vector<Arg> operands;
  if (op.operands.empty())
    operands.assign(args.begin() + static_cast<std::ptrdiff_t>(std::min(first, args.size())), args.end());
  for (const RegionOperand& operand : operands_of(op, args)) operands.push_back(operand.value);
  Node* const before = call->previous();
  TRY(Node * made, inline_region(call, nullptr, operands, *body));
  if (op.kind == Control::Checkpoint) {
    // What one region computes for another is saved, or the backward would run all regions before it again. A region
    // within another is a part of it.
    const bool within = call->recompute != Recompute::Unspecified;
    for (const Arg& operand : within ? std::vector<Arg>() : operands)
      if (Node* n = operand.node(); n && n->recompute == Recompute::PreferRecompute) n->recompute = Recompute::MustSave;
    for (Node* n = before ? before->next() : call->graph().first(); n != call; n = n->next())
      if (n->recompute == Recompute::Unspecified) n->recompute = Recompute::PreferRecompute;
  }
  if (!made) made = call->next();
  call->graph().erase(call);
  return made;
}

Result<Node*> inline_autocast(Node* call) {
  // (device, dtype, enabled, cache, sub graph, *operands)
  constexpr std::size_t first = 5;
  const Args args = call->args();
  const Node* attribute = args.size() < first ? nullptr : args[first - 1].node();
  const Graph* body = attribute && attribute->is(Op::get_attr()) ? call->graph().child(attribute->target) : nullptr;
  if (!body) return malformed(*call, "has no sub graph");
  Graph& graph = call->graph();
  Node* begin = graph.create(enter(), {args[0], args[1], args[2], args[3]}, {}, {}, call);
  TRY(Node * made, inline_region(call, begin, std::vector<Arg>(args.begin() + first, args.end()), *body));
  graph.create(leave(), {begin}, {}, {}, call);
  graph.erase(call);
  return made;
}

}  // namespace partita
