#pragma once
// Opens everything that PyTorch writes to disk.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ir/stage.h"
#include "core/load/export_signature.h"
#include "core/load/file.h"

namespace partita {

/// What a graph is in PyTorch's flow, the stage whose passes it goes through, and whether a training step is made of it
/// by differentiating it: a graph that PyTorch has cut out already is not. Graph when the file does not say; Text when
/// it is not a graph.
#define PARTITA_ARTEFACT_KINDS(V)                  \
  V(Dynamo, "dynamo", PreGradPasses, true)         \
  V(PreGrad, "pre_grad", PreGradPasses, true)      \
  V(Exported, "exported", PreGradPasses, true)     \
  V(Core, "core", PostGradPasses, true)            \
  V(Joint, "joint", JointPasses, false)            \
  V(Forward, "forward", PostGradPasses, false)     \
  V(Backward, "backward", PostGradPasses, false)   \
  V(Inference, "inference", PostGradPasses, false) \
  V(PostGrad, "post_grad", PostGradPasses, false)  \
  V(Graph, "graph", PostGradPasses, true)          \
  V(Text, "text", PostGradPasses, false)

enum class ArtefactKind : unsigned char {
#define V(name, ...) name,
  PARTITA_ARTEFACT_KINDS(V)
#undef V
};
/// As `partita list` prints it: "text".
std::string_view kind_name(ArtefactKind kind);
/// The stage whose passes a graph of this kind goes through.
Stage stage_of(ArtefactKind kind);
/// Is a training step made of a graph of this kind by differentiating it?
bool is_differentiable(ArtefactKind kind);

/// What files beside a graph's text have of it: graph_dumper's .input and state_dict.pt, a repro script's storages.
struct Companion {
  std::vector<Meta> placeholders;            ///< in placeholder order; empty if there is no .input
  std::vector<Value> sample_inputs;          ///< the dumped example inputs; empty if there are none
  std::map<std::string, Tensor> attributes;  ///< by get_attr target
  std::shared_ptr<const Graph> whole;        ///< the same graph with the sub graphs that the text lacks; null: none
};

/// What a log tells of a symbol of a compilation.
struct LoggedSymbol {
  std::int64_t hint = 0;
  SymRange range;
};
using LoggedSymbols = std::map<std::string, LoggedSymbol>;

/// The numbers and flags (1 or 0) of torch._functorch.config under which a compilation of a log was made, by name;
/// empty where the log does not tell.
using FunctorchConfig = std::map<std::string, double>;

/// A graph that `partita record` saw being compiled, and the call of it whose values it kept.
struct Recorded {
  std::int64_t number = 0;  ///< of the graph in its process, in the order of compilation
  std::string cache;        ///< of inductor's compilation: "hit", "miss", "bypass", or "off"; empty: not known
  std::string error;        ///< why it was not compiled; else empty
  /// What the program set of inductor's options, as torch:inductor+KEY=VALUE takes them.
  std::map<std::string, std::string> options;
  std::int64_t calls = 0;  ///< how often it ran, and the time of all calls and of the first
  double seconds = 0, first_seconds = 0, compile_seconds = 0;
  std::int64_t call = 0;        ///< whose values were kept, from 1 up; 0: none
  std::string why;              ///< "first", "nan" or "exception"
  std::string inputs, outputs;  ///< their files; empty: there is none
  std::int64_t left_out = 0;    ///< how many values were beyond a limit
  bool of_trace = false;        ///< the graph is the trace's, whose inputs are the recorded graph's
};

/// One graph or text of a file, a log or a folder. Cheap to copy. Graphs are read when asked for.
class Artefact {
 public:
  /// Unique within a Loaded, and the same in every run: "joint", "0_0.aot_joint_graph", "graphs/joint".
  std::string id;
  ArtefactKind kind = ArtefactKind::Text;
  std::string title;  ///< for people: "joint graph of 0/0"
  /// Artefacts that belong together have the same group: the compile id "0/0" of a log, or the folder of a file. May be
  /// empty.
  std::string group;
  Where where;                                       ///< the file and the first line of the artefact in it
  std::shared_ptr<const ExportedProgram> program;    ///< of a .pt2 archive, else null
  std::shared_ptr<const Companion> companion;        ///< of a graph_dumper folder or a repro script, else null
  std::shared_ptr<const LoggedSymbols> symbols;      ///< of a compilation in a log, else null
  std::shared_ptr<const FunctorchConfig> functorch;  ///< of a compilation in a log, else null
  std::shared_ptr<const Recorded> recorded;          ///< in a folder of `partita record`, else null

  bool is_graph() const { return kind != ArtefactKind::Text; }
  /// Makes a new graph at each call, which the caller may change; with the configuration's device "cpu" it is moved
  /// there. Thread-safe.
  Result<std::unique_ptr<Graph>> graph() const;
  /// The text as it is on disk (log payloads without their tabs); for an archive, the graph's FX text.
  Result<std::string> text() const;

  /// A piece of a file; the text is all pieces in order. If it is tabbed, the first tab of each line is removed.
  struct Piece {
    std::size_t begin = 0, size = 0;
    bool tabbed = false;
  };
  /// Pieces of what was read of a file at one time.
  struct Part {
    std::shared_ptr<const FileBytes> bytes;
    std::vector<Piece> pieces;
  };
  /// An artefact of what is on disk, or in memory.
  static Artefact of_text(std::vector<Part> parts);  ///< one or more, of one file
  static Artefact of_text(std::shared_ptr<const FileBytes> bytes, std::vector<Piece> pieces);
  static Artefact of_text(std::shared_ptr<const FileBytes> bytes);  ///< the whole file
  static Artefact of_string(std::string text);                      ///< text that was made while loading
  static Artefact of_graph(std::shared_ptr<const Graph> graph);

 private:
  std::vector<Part> parts_;
  std::shared_ptr<const std::string> string_;
  std::shared_ptr<const Graph> graph_;
};

struct Loaded {
  std::string path;
  std::vector<Artefact> artefacts;   ///< in the order of the file or log; folders by path
  std::vector<Diagnostic> warnings;  ///< errors of the parts that could not be read; notes: of what was

  /// By its id, or by the id with more of its path before it; null when there is none.
  const Artefact* find(std::string_view id) const;
  /// The graph with that id, or the only one that is meant by the end of an id, by a kind ("joint") or by the number of
  /// a recorded graph (then the call with a NaN or before an exception, if there is one, else the first). With an empty
  /// id, the only graph, or the only one of the preferred kind (joint first, then exported, dynamo, inference,
  /// forward). Error load.graph_id lists the ids; load.no_graph says what the file is instead.
  Result<const Artefact*> pick(std::string_view id) const;
};

/// Opens what docs/files.md lists: FX text, prints, archives, logs, folders, and files without a graph. Error when
/// nothing in it can be read. `progress` may be null.
Result<Loaded> load(const std::string& path, const Progress* progress = nullptr);

}  // namespace partita
