#pragma once
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/cpu/executor.h"
#include "codegen/library/description.h"
#include "codegen/library/image.h"

namespace partita::codegen {

/// One graph of a library. It prepares memory and library calls for each set of sizes that it meets, and keeps the last
/// few. One thread at a time may use it.
class GraphRunner {
 public:
  /// `fixed`: the placeholders whose values stay the same. Errors codegen.program, library.damaged.
  static Result<GraphRunner> make(const LibraryGraphs& graphs, const LibraryGraphFacts& facts,
                                  const std::vector<Tensor>& weights, std::set<int> fixed,
                                  Result<Prepared> (*prepare)(const ExternContext&, std::string&));

  /// Binds the symbols of a placeholder to its value. Error library.size when a size contradicts what is bound already;
  /// `name` is the value's.
  Status bind(std::size_t placeholder, const Value& value, const std::string& name,
              std::map<std::string, std::int64_t>& sizes) const;
  /// The value of a placeholder that is a symbolic number; None where it does not follow from the sizes.
  Value number(std::size_t placeholder, const std::map<std::string, std::int64_t>& sizes) const;
  /// Binds all, checks the guards, and runs. Errors library.guard, and those of the program.
  Result<std::vector<Value>> run(const std::vector<Value>& values, std::map<std::string, std::int64_t> sizes);
  void set_threads(int threads);

  /// The one for sizes that are neither 0 nor 1.
  const Program& program() const { return *code_[0].program; }

 private:
  struct Code {
    std::map<std::string, std::int64_t> fixed;  ///< as LibraryGraphFacts has it
    std::shared_ptr<const Program> program;
    std::shared_ptr<LoadedCode> functions;
  };
  struct Instance {
    std::map<std::string, std::int64_t> sizes;
    std::unique_ptr<Executable> executable;
  };
  explicit GraphRunner(ExecutorOptions options) : options_(std::move(options)) {}

  /// One whose guards hold, else one whose guards say why there is none; null when no code has these sizes.
  const Code* code_for(const std::map<std::string, std::int64_t>& sizes) const;

  std::vector<Code> code_;
  std::vector<SymExpr> numbers_;  ///< by placeholder; 0: it is no symbolic number
  std::map<std::string, Tensor> constants_;
  ExecutorOptions options_;
  std::list<Instance> instances_;  ///< in the order of their last use
};

}  // namespace partita::codegen
