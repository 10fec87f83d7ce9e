#pragma once
// A record of the structured log that PyTorch writes with TORCH_TRACE: one line, "V1121 07:58:09.531000 PID FILE:LINE]
// {json}", whose payload follows, each line after a tab. trace_log.cpp reads it and trace_writer.cpp writes it.
#include <cstdint>
#include <optional>
#include <string>

namespace partita::trace {

/// What a record belongs to: a compilation of a frame (for us: of a graph), and the attempt at it.
struct CompileId {
  std::optional<std::int64_t> compiled_autograd, frame;
  std::int64_t compile = 0, attempt = 0;
  bool operator==(const CompileId&) const = default;
};
/// "0/1"; "0/1_2" for a further attempt, "!3/0/1" within compiled autograd; empty outside any compilation.
std::string text_of(const CompileId& id);

/// The keys of a record's JSON that hold its CompileId, in the order of the fields.
inline constexpr const char* id_keys[] = {"compiled_autograd_id", "frame_id", "frame_compile_id", "attempt"};
/// The key that holds the MD5 of the payload: of its lines without their tabs, and without the newline at the end.
inline constexpr const char* payload_key = "has_payload";
/// What a record's key is when its name is in its metadata.
inline constexpr const char* artifact_key = "artifact";
/// Names of files begin so; PyTorch adds "rank_N_" when it is distributed, letters at random and ".log".
inline constexpr const char* file_prefix = "dedicated_log_torch_trace_";

}  // namespace partita::trace
