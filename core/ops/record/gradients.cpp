#include "core/ops/record/gradients.h"

namespace partita {

Node* tensor_node(const FakeCall& call, std::string_view name) {
  Node* node = call.arg(name).node();
  if (!node) fail(std::string(name) + " is not a tensor");
  return node;
}

}  // namespace partita
