#pragma once

namespace partita {

/// Are graphs and plans verified between stages? True in debug builds, with --verify, and if the environment has
/// PARTITA_VERIFY=1, as the tests do.
bool verification();
void set_verification(bool on);

}  // namespace partita
