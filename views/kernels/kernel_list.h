#pragma once
// The kernels of one graph, ours or inductor's, and their rows; no widgets.
#include <QString>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "app/tasks/kernels.h"
#include "views/table/table_model.h"

namespace partita::views {

/// What a compiler made of one graph.
struct KernelList {
  QString name;  ///< "forward"
  schedule::KernelReport report;
  std::shared_ptr<const Graph> graph;  ///< whose nodes the rows name; null: it is not known
  QStringList forms;                   ///< titles: "loop IR"
  /// The code of a step in a form; nullopt when the step has none. Slow; called on another thread.
  std::function<Result<std::optional<loops::LinkedText>>(int form, std::size_t step)> code;
  QString note;  ///< beside the rows: counts of links

  /// The place in the user's program that a node comes from; null when it is not known.
  const StackFrame* source(const std::string& node) const;
  /// The step that computes a node of this name, else one from the same line of the program.
  std::optional<std::size_t> step_of(const QString& node, const StackFrame* source) const;
};

QStringList kernel_columns();
/// A row for each step; choosing it selects its last node.
std::vector<Row> kernel_rows(const KernelList& list);
/// What was fused in a step, from where, and why no more; as rich text with all of it escaped.
QString kernel_details(const KernelList& list, std::size_t step);

/// What our compiler planned, with the code of its steps in each form.
KernelList planned_kernels(PlannedGraph graph, std::shared_ptr<const std::vector<KernelForm>> forms);
/// Inductor's output code as a list of steps with one form, its code.
KernelList inductor_kernels(std::shared_ptr<const Loaded> loaded, InductorCode code);

}  // namespace partita::views
