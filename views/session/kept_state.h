#pragma once
#include "views/session/document.h"

namespace partita::views {

/// Keeps what the user did to a document for the next time its file is opened: pins, memory budget, folded modules and
/// the chosen node. A document as it came is not kept.
void keep_state(const Document& document);
/// Gives a document that was not drawn yet what was kept.
void restore_state(Document& document);

}  // namespace partita::views
