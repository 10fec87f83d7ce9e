#pragma once
#include <QString>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/load/session.h"
#include "core/partition/partition.h"
#include "core/passes/pipeline.h"
#include "views/code/code_document.h"
#include "views/graph/scene.h"

namespace partita::views {

/// One graph or text that can be shown: an artefact of a file, or something made from one.
struct Document {
  QString key;  ///< "PATH#ID"
  QString title;
  QString path;  ///< the file it comes from
  QString id;    ///< the artefact's, for the command line; empty when made here
  ArtefactKind kind = ArtefactKind::Text;
  Artefact artefact;
  std::shared_ptr<const Graph> graph;  ///< null: not read yet, or plain text

  std::shared_ptr<const CodeDocument> code;
  std::shared_ptr<const Scene> scene;
  std::shared_ptr<const Cut> cut;  ///< of a joint graph
  std::unordered_map<std::string, Pin> pins;
  double memory_budget = 1;         ///< of the cut, 0..1 as PartitionOptions has it
  std::vector<BudgetPoint> budget;  ///< what each budget would cost; empty: not known yet
  std::optional<std::unordered_map<std::string, Pin>> budget_asked;  ///< the pins it was asked for
  std::unordered_set<std::string> folded;
  Facts facts;                               ///< what runs found out about its nodes
  std::optional<std::int64_t> bytes_before;  ///< saved bytes before the last pin or budget
  QString no_kernels;                        ///< why the compiler has no plan for it; empty: it has, or was not asked
};

/// What makes a document visible; the slow part, for a working thread.
struct Rendering {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const CodeDocument> code;
  std::shared_ptr<const Scene> scene;
  std::shared_ptr<const Cut> cut;
  std::optional<Diagnostic> cut_problem;  ///< why there is no cut; the picture shows without it
};
/// `document` is a copy; `text_width` measures card texts. Keeps places of the document's scene when it has one.
Result<Rendering> render(const Document& document, const TextWidth& text_width, const Progress& progress);

/// The partitioner's options that a document's pins stand for.
PartitionOptions partition_options(const Document& document);

}  // namespace partita::views
