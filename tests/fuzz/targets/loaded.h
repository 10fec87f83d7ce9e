#pragma once
// What `list` and `show` do with a file once its kind is known.
#include "core/ir/print.h"
#include "core/ir/verify.h"
#include "core/load/sources.h"
#include "tests/fuzz/targets/input_file.h"

namespace partita::fuzz {

using Reader = Status (*)(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);

/// Reads the bytes as a file of one kind, and all graphs and texts in it.
inline void open_all(Reader read, const std::uint8_t* data, std::size_t size) {
  const InputFile file(data, size);
  auto bytes = FileBytes::open(file.path());
  CHECK(bytes);
  Loaded loaded;
  const Progress silent;
  Loading loading{loaded, silent};
  (void)read(*bytes, "", loading);
  for (const Artefact& artefact : loaded.artefacts) {
    CHECK(artefact.text());
    auto graph = artefact.graph();
    if (!graph) continue;
    CHECK(verify(**graph).empty(), "a loaded graph is broken");
    (void)print(**graph);
  }
}

}  // namespace partita::fuzz
