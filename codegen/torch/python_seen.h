#pragma once
// What the Python that runs PyTorch was found to have, kept beside inductor's cache, so that it can be told without a
// start of that Python.
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/base/config.h"

namespace partita::torch {

/// Where inductor's cache and what is known of Pythons are: beside our store, which may not exist yet.
std::string cache_folder();

/// A Python by its path.
struct PythonSeen {
  std::string program;  ///< as the configuration or the environment names it
  std::string what;     ///< "torch 2.13.0+cpu, CPU, g++ 12.2.0"; empty: never started, or replaced since
};
PythonSeen python_seen(const Config& config);

/// Keeps what a Python said when it was started: {"torch", "devices", "compiler", "triton"}. A failure is not worth an
/// error: it is found out again.
void remember_python(const std::string& program, const nlohmann::json& hello);

}  // namespace partita::torch
