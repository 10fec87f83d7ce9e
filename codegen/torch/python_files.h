#pragma once
#include <span>
#include <string_view>
#include <utility>

namespace partita::torch {

/// The paths and texts of the worker's Python files, those below codegen/torch/worker. CMake makes it.
std::span<const std::pair<std::string_view, std::string_view>> python_files();

/// The same of the recorder, below codegen/python/partita/record.
std::span<const std::pair<std::string_view, std::string_view>> recorder_files();

}  // namespace partita::torch
