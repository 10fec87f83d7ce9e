#pragma once
// Compiled code in a process of its own, for callers that outlive its crashes. The process is this program started
// anew with the verb `worker`: a fork would copy locks that other threads of a window hold.
#include <functional>
#include <string>

#include "codegen/backends.h"

namespace partita {

/// A compiler that works in `options.worker`, which must be set. All graphs compiled by it share one process. Inputs
/// are copied once, into memory that both processes map; outputs are that memory. Errors: worker.start,
/// memory.shared, death()s, Fault::Cancelled, and the compiler's own.
CompileFn compile_in_worker(const std::string& backend, const BackendOptions& options);

/// The other side: answers requests on `socket` until the other process closes it or ends. `make` gives the backend's
/// compiler with the planted fault, if any. Error worker.socket when nobody is there.
Status serve_as_worker(int socket,
                       const std::function<Result<CompileFn>(const std::string& backend, const std::string& plant,
                                                             const BackendOptions& options)>& make);
/// The number of the socket in the worker.
constexpr int worker_socket = 3;

}  // namespace partita
