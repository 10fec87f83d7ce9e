#pragma once
// Operators of the user's own, whose meaning is a text: FX code of their decomposition, and of their backward.
#include <memory>
#include <string>
#include <string_view>

#include "core/ops/record/record.h"

namespace partita {

/// What the user's texts say of an operator (docs/operators-of-your-own.md). Immutable, and lives as long as the
/// process; Op::meaning points to it.
struct UserOperator {
  Schema schema;    ///< PyTorch's where its table has one, else made of the text
  OpRecord record;  ///< `decompose` places the calls of `forward`, `gradient` those of `backward`
  std::unique_ptr<const Graph> forward, backward;  ///< backward: null where the gradient goes through the forward
  std::string file, backward_file;                 ///< for errors
  std::string text, backward_text;                 ///< as the files have them
};

/// What the user says that calls of the operator compute; null: nothing. Operators that only call another one
/// (auto_functionalized) have that one's Op::meaning, but none of their own.
const UserOperator* meaning_of(const Op* op);

/// The texts of one operator, read.
struct UserTexts {
  std::string name;  ///< "mylib.scale_add.default"
  std::string hash;  ///< of all that decides the meaning
  std::unique_ptr<Graph> forward, backward;
  std::string file, backward_file;
  std::string text, backward_text;
};

/// Makes the operator of the texts, or finds it where it was made of the same texts before. Error ops.meaning: what
/// the texts must not have, and arguments that do not fit.
Result<const Op*> user_operator(UserTexts texts);

/// The files of a folder for --operators that has the meanings of a graph's calls, and of what their texts call: texts
/// by file name.
std::map<std::string, std::string> meaning_files(const Graph& graph);

/// Replaces the calls that have a meaning of the user's, sub graphs included, by the calls of their texts. Values keep
/// their names. Returns whether there were any.
Result<bool> place_meanings(Graph& graph);

}  // namespace partita
