#pragma once
// What the placeholders of a text graph are, as far as their names and comments tell. (Of an archive, its signature
// tells.)
#include <string>
#include <vector>

#include "core/aot/aot.h"
#include "core/load/safetensors.h"

namespace partita {

/// Parameters and buffers by the comment of a trace log ("ParamAOTInput(target='fc1.weight')"), by dynamo's name
/// (L_self_modules_fc1_parameters_weight_) or torch.export's (p_fc1_weight, b_NAME, c_NAME: the dots are lost, so
/// `name` is "fc1_weight"). Others are User or Symbol, under the placeholder's name.
InputBinding text_role(const Node& placeholder);

/// The keys of a text graph's placeholders in IO files, in order. Every placeholder counts, "input.0", "input.1", ...,
/// where the file holds as many inputs. A file with fewer holds the user's inputs alone: then parameters and buffers
/// are "param.NAME" and "buffer.NAME" (a name that lost its dots is completed from the file's keys); where names tell
/// of none, the inputs are, in order, the first placeholders whose dtype, rank and sizes they have, and the others
/// "param.NAME". A symbol whose number the file leaves out is "symbol.NAME".
std::vector<std::string> text_keys(const Graph& graph, const TensorFile& io);

}  // namespace partita
