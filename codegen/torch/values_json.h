#pragma once
#include <span>

#include <nlohmann/json.hpp>

#include "core/tensor/shared_values.h"

namespace partita::torch {

/// The value as codegen/torch/worker/values.py reads it. A tensor names its storage by its place in `storages`, to
/// which a new one is added.
nlohmann::json value_json(const Value& value, Storages& storages);

/// What values.py wrote, over the storages. Error process.message for anything else: tensors must lie within their
/// storages.
Result<Value> value_from(const nlohmann::json& described, std::span<const std::shared_ptr<Storage>> storages);

}  // namespace partita::torch
