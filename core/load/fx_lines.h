#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ir/graph.h"
#include "core/load/fx_text.h"

/// What of FX text is read by lines: headers of classes, comments, and what follows the module.
namespace partita::fx {

/// One physical line and its position in the text.
struct Line {
  std::size_t begin = 0, end = 0;  ///< end is the position of the newline
  std::size_t indent = 0;
  std::string_view content;  ///< trimmed
};
/// Reads the line at `at`; false at the end of the text.
bool read_line(std::string_view text, std::size_t at, Line& line);

/// The NAME of "class NAME(torch.nn.Module):" with any base. NAME need not be an identifier (<lambda>).
std::string_view class_name(const Line& line);
/// Reads "File: F:LINE in FUNC, code: CODE" or "No stacktrace found for following nodes", both with optional text
/// before. Null for other comments.
std::shared_ptr<const Origin> origin_of(std::string_view comment);
/// The tag in an origin's prefix: "recompute: MUST_SAVE", or in a checkpointed region "ac_graph_id: 3 - MUST_SAVE".
Recompute recompute_tag(std::string_view prefix);
/// The id of the checkpointed region, "ac_graph_id: 3", in an origin's prefix; nullopt outside of regions.
std::optional<std::int64_t> checkpoint_region(std::string_view prefix);
/// Of values that are to be recomputed, marks those to be saved that a later region recomputes from. Otherwise the
/// backward would run all regions before it again. (cleanup_recompute_tags in torch/_functorch/partitioners.py)
void save_region_borders(Graph& graph);

/// PyTorch's words for the tensor attributes that the method assigns from `at` on, because a graph cannot; empty if the
/// statement at `at` assigns none.
std::string assigned_attributes(std::string_view text, std::size_t at);

/// (NAME, CLASS) of "self.NAME = CLASS()" in a repro script; nullopt for other statements.
std::optional<std::pair<std::string_view, std::string_view>> made_module(std::string_view statement);
/// The CLASS of a sub graph that a script of torch 2.13 or older makes and does not have.
inline constexpr std::string_view lost_module = "<lambda>";
/// The same of all statements before the module's forward.
std::vector<std::pair<std::string, std::string>> made_modules(std::string_view text, const FxSection& section);
/// All graphs in the text, also those that are parts of others.
std::vector<FxSection> find_all_graphs(std::string_view text);
/// Those of them that are not made by another one.
std::vector<FxSection> whole_graphs(std::string_view text, std::vector<FxSection> all);

/// The range of a symbol of which the text says nothing: symbolic sizes of dynamo are at least 2, unbacked ones 0.
SymRange range_of(std::string_view symbol);
/// Reads "2, int_oo"; nullopt if these are no two limits.
std::optional<SymRange> read_range(std::string_view limits);
/// Reads what follows the module of a printed ExportedProgram: "Range constraints: {u0: VR[0, 5], s7: VR[2, int_oo]}".
void read_ranges(std::string_view text, ShapeEnv& shapes);

}  // namespace partita::fx
