"""Fewer examples for properties of which each example is dear: it writes a lake, or replays a log again and again."""

from __future__ import annotations

import os

from hypothesis import settings

few_examples = settings(max_examples=settings().max_examples if os.environ.get("KRAFTLAKE_TESTS") == "long" else 20)
"""As many as ever in the long profile."""
