// xxHash itself, so that a model's library needs no libxxhash.
#define XXH_STATIC_LINKING_ONLY
#define XXH_IMPLEMENTATION
#include <xxhash.h>
