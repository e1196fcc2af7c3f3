"""Functions as machine code: compiled once a machine by numba, kept in the user's cache, loaded by LLVM alone."""
