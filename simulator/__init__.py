"""Simulates whole clusters in virtual time: `python -m simulator SEED`, see docs/simulation.md.

Its tests are in tests/simulation. It is no part of the wheel.
"""
