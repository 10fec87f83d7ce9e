#pragma once
// What the placeholders of a graph are: by an archive's signature, in text by their names and comments.
#include <string>
#include <vector>

#include "core/aot/aot.h"
#include "core/load/safetensors.h"

namespace partita {

/// Recognises parameters and buffers by the comment of a trace log ("ParamAOTInput(target='fc1.weight')"), by dynamo's
/// name (L_self_modules_fc1_parameters_weight_), or by torch.export's name (p_fc1_weight, b_NAME, c_NAME; these lost
/// their dots, so `name` is "fc1_weight"). Others are User or Symbol, named as the placeholder.
InputBinding text_role(const Node& placeholder);
/// The same by the signature of an archive where there is one.
InputBinding input_role(const Node& placeholder, const ExportedProgram* program);
bool is_weight(InputRole role);  ///< a parameter, buffer or constant
/// The key of a weight in IO files: "param.NAME", "buffer.NAME", "constant.NAME".
std::string plain_key(const InputBinding& weight);

/// The keys of a text graph's placeholders in IO files, in order. If the file holds that many inputs, every placeholder
/// counts: "input.0", "input.1", ... A file with fewer holds only the user's inputs. Parameters and buffers are then
/// "param.NAME" and "buffer.NAME", where a name that lost its dots is completed from the file's keys. If names reveal
/// no weights, each input goes to the first placeholder with its dtype, rank and sizes, in order, and the other
/// placeholders are "param.NAME". A symbol whose number the file leaves out is "symbol.NAME".
std::vector<std::string> text_keys(const Graph& graph, const TensorFile& io);

/// Whether a symbol's number may be kept in t.
bool is_number(const Tensor& t);

}  // namespace partita
