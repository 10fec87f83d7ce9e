// Gives the header that all tests share, compiled once, a target to belong to.
