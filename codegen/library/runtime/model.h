#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codegen/library/partita_model.h"
#include "codegen/library/runtime/runner.h"

namespace partita::codegen {

/// A value as the C interface tells it.
struct ValueFacts {
  std::string name;
  partita_info info{};
  std::vector<std::int64_t> sizes, strides;
  std::vector<std::string> texts;
  std::vector<const char*> size_names;
};

/// Results of a forward that its backward takes.
struct Saved {
  std::vector<Value> values;
};

/// A library's model: its weights and its graphs.
class Model {
 public:
  /// Errors library.isa, library.weights, library.damaged, and those of reading files.
  static Result<std::unique_ptr<Model>> load(const LibraryImage& image, const char* weights);

  const LibraryDescription& description() const { return description_; }
  const std::string& isa() const { return isa_; }
  Status set_threads(int threads);
  const std::vector<ValueFacts>& inputs() const { return inputs_; }
  const std::vector<ValueFacts>& outputs() const { return outputs_; }
  const std::vector<ValueFacts>& gradients() const { return gradients_; }
  const std::vector<ValueFacts>& weights() const { return weight_facts_; }
  const std::vector<std::string>& guards() const { return guards_; }
  /// Error library.weights for a model whose weights may not be written.
  Result<Tensor> weight(std::size_t index) const;

  /// One value for each input of the user. With `saved`, what the backward needs is kept there. No result shares memory
  /// with an input or a weight.
  Result<std::vector<Value>> forward(const std::vector<Value>& inputs, Saved* saved);
  /// tangents: one for each output of the user, None counts as zeros (see partita_backward()).
  Result<std::vector<Value>> backward(Saved saved, const std::vector<Value>& tangents);

 private:
  Status take_weights(const LibraryImage& image, const char* path);
  Status make_runners(const LibraryCode& code, const LibraryImage& image);
  Status describe();
  /// The values of the forward's placeholders.
  Result<std::vector<Value>> arguments(const std::vector<Value>& inputs) const;
  Status check_ranges(const std::map<std::string, std::int64_t>& sizes) const;

  LibraryDescription description_;
  std::string isa_;
  std::vector<Tensor> weights_;
  std::vector<Value> folded_;  ///< what depends on them only
  std::optional<GraphRunner> forward_, backward_;
  std::vector<SymList> input_sizes_;  ///< by input of the user
  std::vector<SymExpr> numbers_;      ///< by placeholder of the forward: of a symbolic number, else 0
  std::vector<ValueFacts> inputs_, outputs_, gradients_, weight_facts_;
  std::vector<std::string> guards_;
  std::mutex mutex_;
};

/// The tensor that a caller's struct describes. Error library.input names the input: its dtype, rank, sizes, strides.
Result<Value> value_of(const partita_tensor& t, const LibraryValue& wanted, const std::string& name);
/// Hands a result to the caller: in memory of its own, or copied to where `out` points. Error library.output.
Status give(const Value& value, const std::string& name, partita_tensor& out);

}  // namespace partita::codegen
