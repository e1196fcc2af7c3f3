"""Fuzzing of what reads bytes from outside, guided by the coverage of kraftlake's code."""
