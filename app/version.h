#pragma once

namespace partita {

/// "0.1.0+20261130t0912.gb25d9fc4": the version, and the commit's time and hash where the build had git.
const char* version();
const char* build_kind();  ///< "release", "debug with ASan and UBSan"

}  // namespace partita
