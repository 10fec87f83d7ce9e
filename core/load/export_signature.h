#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// torch.export's InputKind.
enum class ProgramInputKind : unsigned char { UserInput, Parameter, Buffer, Constant, CustomObject, Token };

/// What a placeholder is to the program.
struct ProgramInput {
  ProgramInputKind kind = ProgramInputKind::UserInput;
  std::string name;        ///< name of the placeholder; empty for a user input that is a constant without placeholder
  std::string target;      ///< of parameters, buffers and constants: "transformer.wte.weight"
  bool persistent = true;  ///< of buffers
  /// Value of a user input that is a constant in the archive; of a tangent, what it is filled with when no file has it.
  Arg constant;
  std::string key = {};  ///< of its value in IO files, where kind and target do not say it: "tangent.2"
};

/// torch.export's OutputKind.
enum class ProgramOutputKind : unsigned char {
  UserOutput,
  Loss,
  BufferMutation,
  ParameterMutation,
  UserInputMutation,
  ParameterGradient,
  UserInputGradient,
  Token,
};

/// What one entry of the graph's output is to the program.
struct ProgramOutput {
  ProgramOutputKind kind = ProgramOutputKind::UserOutput;
  std::string name;    ///< the node; empty when a constant is returned
  std::string target;  ///< the buffer, parameter or user input that it updates or is the gradient of
};

/// The signature and tensors of a torch.export archive.
struct ExportedProgram {
  std::vector<ProgramInput> inputs;       ///< in placeholder order
  std::vector<ProgramOutput> outputs;     ///< in output order
  std::map<std::string, Tensor> tensors;  ///< parameters, buffers and constants by target; tied ones share storage
  std::vector<Value> sample_inputs;       ///< leaves of (args, kwargs) in order; empty if the archive has none
  /// The pytrees of (args, kwargs) and of what forward returns, with None for leaves. Unset if the archive has none, or
  /// other containers than tuples, lists and dicts with text for keys.
  std::optional<Arg> arguments, returned;

  /// Null: there is none of that placeholder.
  const ProgramInput* input(std::string_view placeholder) const;
  /// The tensor of a placeholder; null for user inputs.
  const Tensor* tensor_of(std::string_view placeholder) const;
};

std::string_view kind_name(ProgramInputKind kind);   ///< "PARAMETER", "BUFFER", "USER_INPUT", ...
std::string_view kind_name(ProgramOutputKind kind);  ///< "USER_OUTPUT", "BUFFER_MUTATION", ...

}  // namespace partita
