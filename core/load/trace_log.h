#pragma once
// Reads TORCH_TRACE logs, all at once or as they grow. Internal to core/load.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/load/sources.h"

namespace partita {

struct TraceLogRecord;

/// Reads a log from its beginning, in as many parts as it comes in.
class TraceLogReader {
 public:
  /// Ids get the prefix.
  explicit TraceLogReader(std::string prefix);
  ~TraceLogReader();

  /// Reads the next bytes of the log, which begin where the last call ended, and gives how many it took. Unless they
  /// are the `last`, a record that may go on is left for the next call: one whose payload is not all there.
  Result<std::size_t> read(const std::shared_ptr<const FileBytes>& bytes, bool last, Loading& loading);
  /// Adds the record that read() left, as far as it is there, under the id that it has when it is read. True when it is
  /// known to be incomplete.
  bool show_rest(const std::shared_ptr<const FileBytes>& rest, Loading& loading);
  /// Adds the texts of records that are useful only together, and again those that have grown since.
  void flush(Loading& loading);

 private:
  struct Gathered {
    std::vector<Artefact::Part> parts;
    std::string id;  ///< it was added with; empty: not yet
    bool grown = false;
  };
  /// What graphs are given of their compilation's other records.
  struct Compilation {
    std::shared_ptr<LoggedSymbols> symbols = std::make_shared<LoggedSymbols>();
    std::shared_ptr<FunctorchConfig> functorch = std::make_shared<FunctorchConfig>();
    bool given = false;  ///< artefacts of an earlier call have them, and other threads may read them
  };

  void warn(int line, const std::string& what, Severity severity, Loading& loading);
  void keep(const TraceLogRecord& record, std::size_t begin, std::size_t payload, std::size_t end, Loading& loading);
  Artefact artefact_of(const TraceLogRecord& record, std::size_t payload, std::size_t end, const Loading& loading);
  Compilation& compilation(const std::string& compile_id);
  void read_config(std::string_view json, FunctorchConfig& out);
  Artefact named(Artefact artefact, const std::string& compile_id, const std::string& name);

  const std::string prefix_;
  struct Parser;
  const std::unique_ptr<Parser> parser_;
  std::shared_ptr<const FileBytes> bytes_;                            ///< that are being read
  std::map<std::pair<std::string, std::string>, Gathered> gathered_;  ///< by compilation and name
  std::map<std::string, Compilation> compilations_;                   ///< by compile id
  int line_ = 1;
  std::size_t warnings_ = 0;
  bool lost_beyond_ = false;  ///< a warning that is counted only is about something that was not read
  bool skipping_payload_ = false;
};

}  // namespace partita
