#include "core/fake/propagate.h"

#include <utility>

#include <fmt/format.h>

#include "core/fake/renaming.h"
#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

Result<std::size_t> propagate_sub_graphs(Node& node, const ControlOp& region) {
  TRY_DO(give_metas_to_regions(region, node));
  std::size_t count = 0;
  for (std::size_t i : region.graphs) {
    TRY(Graph* const child, region_graph(node, i));
    TRY(const std::size_t inner, propagate(*child));
    count += inner;
  }
  node.meta = region_results(region, node);
  return count + 1;
}

bool no_aspect(const Diagnostic& d) {
  return d.code == "ops.unknown";
}

}  // namespace

Result<std::size_t> propagate(Graph& graph) {
  std::size_t count = 0;
  for (Node* node : graph) {
    if (node->is(Op::get_attr())) {
      auto it = graph.attributes.find(node->target);
      if (!node->meta.known() && it != graph.attributes.end()) node->meta = meta_of(it->second);
      continue;
    }
    if (!node->op()->is_call()) continue;
    if (const ControlOp* region = find_region(node->op())) {
      TRY(std::size_t inner, propagate_sub_graphs(*node, *region));
      count += inner;
      continue;
    }
    Result<Meta> inferred = infer(*node);
    if (!inferred) {
      if (no_aspect(inferred.error()) && node->meta.known()) continue;
      // FX text annotates the getitems of a call with several results, not the call.
      bool read_by_parts = !node->users().empty();
      for (Node* user : node->users()) read_by_parts &= user->is(Op::getitem()) && user->meta.known();
      if (no_aspect(inferred.error()) && read_by_parts) continue;
      if (node->is(Op::getitem()) && node->meta.known()) continue;
      return std::move(inferred).error();
    }
    ++count;
    // Keep a known annotation if the inferred meta differs from it only in the names of unbacked symbols.
    if (!node->meta.known() || !UnbackedRenaming(*graph.shapes).same(*inferred, node->meta)) {
      node->meta = *std::move(inferred);
    } else if (auto* old = node->meta.tensor(), *fresh = inferred->tensor(); old && fresh) {
      old->strides_known = fresh->strides_known;
      if (old->strides.size() != fresh->strides.size()) old->strides = fresh->strides;
      old->storage_id = fresh->storage_id;
      old->offset = fresh->offset;
    }
  }
  return count;
}

Status settle_annotations(Graph& graph) {
  std::vector<std::pair<Node*, Meta>> annotations;
  for (Node* node : graph)
    if (node->op()->is_call() && node->meta.tensor()) annotations.emplace_back(node, node->meta);
  if (auto done = propagate(graph); !done)
    return done.error().fault == Fault::Unsupported ? Status() : Status(std::move(done).error());
  UnbackedRenaming renaming(*graph.shapes);
  for (const auto& [node, annotated] : annotations) {
    const TensorMeta *old = annotated.tensor(), *now = node->meta.tensor();
    if (!now) continue;
    TensorMeta wanted = *now;
    wanted.strides = old->strides;
    wanted.strides_known = old->strides_known;
    if (!renaming.same(Meta(wanted), annotated))
      return input_error("fake.annotation",
                         fmt::format("{} is annotated {}, but its call gives {}; mend one of them", node->name(),
                                     annotation(annotated), annotation(node->meta)),
                         place_of(*node));
  }
  return {};
}

MetaCheck check_metas(const Graph& graph) {
  MetaCheck check;
  std::unique_ptr<Graph> copy = graph.clone();
  for (Node* node : *copy) {
    if (!node->op()->is_call()) continue;
    bool annotated = node->meta.known();
    if (const ControlOp* region = find_region(node->op())) {
      if (!propagate_sub_graphs(*node, *region)) ++check.without_record;
      continue;
    }
    const Node* tuple = node->is(Op::getitem()) ? node->args()[0].node() : nullptr;
    if (tuple && !tuple->meta.known()) {
      check.without_record += annotated;
      continue;
    }
    Result<Meta> inferred = infer(*node);
    if (!inferred && no_aspect(inferred.error())) {
      check.without_record += annotated;
      continue;
    }
    if (!annotated) {
      if (inferred)
        node->meta = *std::move(inferred);
      else
        check.differences.push_back({node->name(), node->op()->name, "", inferred.error().line()});
      continue;
    }
    ++check.checked;
    if (!inferred)
      check.differences.push_back({node->name(), node->op()->name, annotation(node->meta), inferred.error().line()});
    else if (!UnbackedRenaming(*graph.shapes).same(*inferred, node->meta))
      check.differences.push_back({node->name(), node->op()->name, annotation(node->meta), annotation(*inferred)});
  }
  for (const auto& [target, child] : copy->children) {
    MetaCheck inner = check_metas(*child);
    check.checked += inner.checked;
    check.without_record += inner.without_record;
    check.differences.insert(check.differences.end(), inner.differences.begin(), inner.differences.end());
  }
  return check;
}

}  // namespace partita
