#pragma once
// What this machine has to run and compile CUDA kernels.
#include <QtTest>
#include <optional>

#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/emulate.h"

namespace partita::testing {

struct CudaTools {
  bool emulates = true;
  std::optional<codegen::CudaCompiler> compiler;

  /// Looks for them, and says what is missing. False: there is nothing.
  bool find() {
    const codegen::CudaKernel empty{.text = "\n", .functions = {}, .workspace = {}};
    const loops::Kernel none;
    const auto object = codegen::emulate_cuda({&empty, 1}, {&none, 1}, 1, false);
    emulates = object || object.error().fault != Fault::Unsupported;
    if (!emulates) qInfo("%s", object.error().line().c_str());
#ifdef PARTITA_SANITIZED
    qInfo("CUDA's compiler gets the same text from the release build, whose tests compile it");
#else
    if (auto found = codegen::find_cuda_compiler())
      compiler = *std::move(found);
    else
      qInfo("%s", found.error().line().c_str());
#endif
    return emulates || compiler;
  }
};

}  // namespace partita::testing
