#pragma once
#include <QSizeF>
#include <QString>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/load/session.h"
#include "core/partition/partition.h"
#include "core/passes/run_passes.h"
#include "views/listing/code_document.h"
#include "views/picture/scene.h"

namespace partita::views {

/// Which modules of a document are folded.
enum class Folding : unsigned char {
  Fit,       ///< none if the whole picture is then readable, else as for Overview
  Overview,  ///< as many as it takes to have the whole picture readable
  Asked,     ///< as the user left them: Document::folded
};

struct Rendering;
using Pins = std::unordered_map<std::string, Pin>;  ///< by node name

/// What the user chose of a document's picture.
struct Choices {
  Pins pins;
  std::vector<Pins> earlier_pins, undone_pins;  ///< what undo and redo go back to, the last first
  std::optional<double> memory_budget = {};     ///< of the cut, as PartitionOptions has it; unset: not chosen here
  Folding folding = Folding::Fit;
  std::unordered_set<std::string> folded;
};

/// One graph or text that can be shown: an artefact of a file, or something made from one.
struct Document : Choices {
  QString key;  ///< "PATH#ID"
  QString title;
  QString path;   ///< the file it comes from
  QString group;  ///< what stands between file and title: a rank's log, a compilation, a folder, what it was made of
  QString id;     ///< the artefact's, for the command line; empty when made here
  QString graph_id() const { return key.mid(path.size() + 1); }  ///< of what is made here too: "exported/joint"
  ArtefactKind kind = ArtefactKind::Text;
  Artefact artefact;
  std::shared_ptr<const Graph> graph;  ///< null: not read yet, or plain text

  std::shared_ptr<const CodeDocument> code;
  std::shared_ptr<const Scene> scene;
  std::shared_ptr<const CutSummary> cut;     ///< of a joint graph
  std::shared_ptr<const Rendering> read;     ///< what was made beside loading, for the first rendering
  Choices drawn;                             ///< those that the picture shows; others are being drawn
  std::vector<BudgetPoint> budget;           ///< what each budget would save and cost; empty: not known yet
  std::optional<Pins> budget_asked;          ///< the pins for which `budget` was asked
  QString chosen;                            ///< the node; empty: none
  std::map<std::string, QString> notes;      ///< the user's, by node; a bookmark has no text
  bool notes_read = false;                   ///< from the store
  Facts facts;                               ///< what runs found out about its nodes
  std::optional<std::int64_t> bytes_before;  ///< saved bytes before the last pin or budget
  /// AOTAutograd's wrappers around the compiled graph, outermost first: name and what it does.
  std::vector<std::pair<QString, QString>> wrappers;
  QString no_kernels;  ///< why the compiler has no plan for it; empty: it has, or was not asked
};

/// The folder below the opened one, the log (a rank's, in a folder of logs) and the compilation that an artefact
/// belongs to, as far as there are these; none for a file's only graph.
QStringList groups_of(const Artefact& artefact, const QString& opened);

/// Why a value of this document cannot get this pin, as a sentence; empty: it can, as far as the partitioner agrees.
QString why_not_pinned(const Document& document, const QString& node, Pin pin);

/// What is needed to show a document. It is slow to make, so that a worker thread makes it.
struct Rendering {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const CodeDocument> code;
  std::shared_ptr<const Scene> scene;
  std::shared_ptr<const CutSummary> cut;
  std::optional<Diagnostic> graph_problem;  ///< why what is said to be a graph is none; its text is shown
  std::optional<Diagnostic> cut_problem;    ///< why there is no cut; the picture is shown without it
  std::unordered_set<std::string> folded;
};
/// The part that needs no layout: graph, code and cut. The rest stays empty.
Result<Rendering> read(const Document& document, const Progress& progress);
/// `document` is a copy; `text_width` measures card texts. Cards keep the places of the document's scene when it has
/// one. `room`: what the picture should fit into, in pixels at 100 %.
Result<Rendering> render(const Document& document, const TextWidth& text_width, QSizeF room, const Progress& progress);

struct Overview {
  std::unordered_set<std::string> folded;
  std::shared_ptr<const Scene> scene;
};
/// The picture with as little folded as it takes to be readable as a whole in this room. If it cannot be, the one that
/// is largest there. `unfolded_too`: nothing is folded if all of it can be read.
Overview fitting(const std::shared_ptr<const Graph>& graph, PictureOptions options, QSizeF room, bool unfolded_too);

/// What is folded in a picture of another cut: with values that are computed again, modules run in other pieces, whose
/// frames are new. They are as those of their module were in the picture before, else as most of their side were.
/// `now`: with nothing folded.
std::unordered_set<std::string> carried_folds(std::unordered_set<std::string> folded, const Picture& before,
                                              const Picture& now);

/// The options of the partitioner that follow from a document's pins and budget.
PartitionOptions partition_options(const Document& document);

}  // namespace partita::views
