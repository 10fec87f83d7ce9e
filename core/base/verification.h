#pragma once

namespace partita {

/// Are graphs and plans verified where they pass from one stage to the next? They are in debug builds, after --verify,
/// and where the environment says PARTITA_VERIFY=1, as the tests' does.
bool verification();
void set_verification(bool on);

}  // namespace partita
