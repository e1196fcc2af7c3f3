"""Topic records replayed on rows of numbers, and what a replay changes."""
