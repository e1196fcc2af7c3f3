"""Compiled loops over bytes and numbers, for bulk work: records found in batches, topic records replayed on rows.

One extension module, `kraftlake.kernels.compiled`, is compiled from this room's files when kraftlake is built
(`build_backend/`); its functions take buffers and release the GIL. Python imports that module, and the files of
constants and named tuples; the others are the source.
"""
