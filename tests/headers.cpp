// A target for the precompiled header that all tests share.
