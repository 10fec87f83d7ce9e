#include "core/base/result.h"

#include <fmt/format.h>

namespace partita {

Diagnostic::Diagnostic(Fault fault, std::string code, std::string message, Where where, std::vector<std::string> notes,
                       Severity severity)
    : fault(fault),
      code(std::move(code)),
      message(std::move(message)),
      where(std::move(where)),
      notes(std::move(notes)),
      severity(severity) {}
Diagnostic::Diagnostic() = default;
Diagnostic::Diagnostic(const Diagnostic&) = default;
Diagnostic::Diagnostic(Diagnostic&&) noexcept = default;
Diagnostic& Diagnostic::operator=(const Diagnostic&) = default;
Diagnostic& Diagnostic::operator=(Diagnostic&&) noexcept = default;
Diagnostic::~Diagnostic() = default;

std::string Diagnostic::line() const {
  std::string place = where.file;
  if (!place.empty() && where.line > 0) place += fmt::format(":{}", where.line);
  std::string text = place.empty() ? "" : place + ": ";
  if (!where.graph.empty()) text += fmt::format("graph {}: ", where.graph);
  if (!where.node.empty()) text += fmt::format("node {}: ", where.node);
  text += message;
  if (!where.origin.empty()) text += fmt::format(" (from {})", where.origin);
  std::string safe;
  for (unsigned char c : text) {
    if (c < 0x20 || c == 0x7f)
      safe += fmt::format("\\x{:02x}", c);
    else
      safe += static_cast<char>(c);
  }
  return safe;
}

Diagnostic input_error(std::string code, std::string message, Where where) {
  return {Fault::Input, std::move(code), std::move(message), std::move(where)};
}

Diagnostic unsupported(std::string code, std::string message, Where where) {
  return {Fault::Unsupported, std::move(code), std::move(message), std::move(where)};
}

Diagnostic stopped_on_request() {
  return {Fault::Cancelled, "cancelled", "stopped on request"};
}

}  // namespace partita
