#pragma once
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/library/description.h"
#include "codegen/library/image.h"
#include "codegen/program/executor.h"

namespace partita::codegen {

/// Gives symbols in sizes, or in a number, their values; `number` is 0 for what is none. Error library.size when a size
/// contradicts what is known already; `name` is the value's.
Status bind_sizes(const Value& value, const SymList& sizes, SymExpr number, const std::string& name,
                  std::map<std::string, std::int64_t>& known);
/// The expression of a text; 0 for none.
Result<SymExpr> expression(const std::string& text);

/// What all graphs of a library share.
struct LibraryContext {
  const LibraryImage& image;
  const std::vector<Tensor>& weights;
  int threads = 1;
};

/// One part of a library's graph. It prepares memory and library calls for each set of sizes that it meets, and keeps
/// the last few. One thread at a time may use it.
class PartRunner {
 public:
  /// `fixed`: the inputs whose values stay the same. Errors codegen.program, library.damaged.
  static Result<PartRunner> make(const LibraryContext& library, const LibraryPartCodes& codes, const LibraryPart& part,
                                 std::set<int> fixed, std::shared_ptr<Generator> generator);

  /// Binds the sizes and runs the code whose guards hold, or interprets the part. Errors library.guard, library.size,
  /// and those of the program.
  Result<std::vector<Value>> run(const std::vector<Value>& values);
  void set_threads(int threads);

  const std::vector<std::uint64_t>& inputs() const { return inputs_; }
  /// Null for a part that is interpreted; else the one for sizes that are neither 0 nor 1.
  const Program* program() const { return code_.empty() ? nullptr : code_[0].program.get(); }
  /// Are there no sizes that it refuses?
  bool is_general() const { return graph_ != nullptr; }

 private:
  struct Code {
    std::map<std::string, std::int64_t> fixed;  ///< as LibraryPart has it
    std::shared_ptr<const Program> program;
    std::shared_ptr<LoadedCode> functions;
  };
  struct Instance {
    std::map<std::string, std::int64_t> sizes;
    std::unique_ptr<Executable> executable;
  };
  explicit PartRunner(ExecutorOptions options) : options_(std::move(options)) {}

  /// One whose guards hold, else one whose guards say why there is none; null when no code has these sizes.
  const Code* code_for(const std::map<std::string, std::int64_t>& sizes) const;
  Result<std::vector<Value>> interpreted(const std::vector<Value>& values) const;

  std::vector<Code> code_;
  std::vector<std::uint64_t> inputs_;
  std::vector<SymExpr> numbers_;  ///< by input; 0: it is no symbolic number
  std::map<std::string, Tensor> constants_;
  std::shared_ptr<const Graph> graph_;  ///< what is interpreted; null: nothing is
  decltype(LibraryImage::interpret) interpret_ = nullptr;
  int threads_ = 1;
  ExecutorOptions options_;
  std::list<Instance> instances_;  ///< in the order of their last use
};

/// One graph of a library: its parts, one after the other.
class GraphRunner {
 public:
  /// `inputs`, `results`: how many the graph has. `fixed`: the inputs whose values stay the same.
  static Result<GraphRunner> make(const LibraryContext& library, const LibraryGraph& graph,
                                  const std::vector<LibraryPart>& parts, std::size_t inputs, std::size_t results,
                                  const std::set<int>& fixed);
  /// Errors as PartRunner::run().
  Result<std::vector<Value>> run(const std::vector<Value>& values);
  void set_threads(int threads);
  const std::vector<PartRunner>& parts() const { return parts_; }

 private:
  std::vector<PartRunner> parts_;
  std::shared_ptr<Generator> generator_;  ///< of several parts; one part has its own
};

}  // namespace partita::codegen
