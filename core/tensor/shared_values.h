#pragma once
// Values handed from one process to another, with their storages in memory that both map.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/result.h"
#include "core/tensor/value.h"

namespace partita {

using Storages = std::vector<std::shared_ptr<Storage>>;

/// A memory file with copies of the storages, each at the next multiple of Storage::alignment bytes. Errors
/// memory.shared when the system has no more; reachable()'s.
Result<Descriptor> copy_storages(std::span<const std::shared_ptr<Storage>> storages);
/// The storages of such a file, of these many bytes, over the file's memory itself. Errors: memory.shared;
/// process.message when the file is shorter.
Result<Storages> map_storages(int file, std::span<const std::size_t> bytes);

struct SharedValues {
  std::string text;   ///< the values, with storages by number
  Descriptor memory;  ///< the storages that the receiver does not know yet, at 64-byte boundaries
};

/// Numbers the values' storages behind those in `known`, which the receiver has, and copies each new one once. Adds
/// the new ones to `known`. Errors: memory.shared when the system has no more; reachable()'s.
Result<SharedValues> share_values(const std::vector<Value>& values, Storages& known);
/// The values, over the shared memory itself. What one process writes to them the other sees. Adds the new storages to
/// `known`, as share_values() did. Error process.message for a text that share_values() did not write.
Result<std::vector<Value>> shared_values(const SharedValues& from, Storages& known);
/// After a share_values() of all that was `known`: copies what the other process wrote into the storages themselves.
Status take_back(const SharedValues& shared, const Storages& known);

}  // namespace partita
