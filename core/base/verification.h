#pragma once

namespace partita {

/// Are graphs and plans verified between stages? The configuration's `verify`.
bool verification();

}  // namespace partita
