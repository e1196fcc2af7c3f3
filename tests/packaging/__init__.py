"""kraftlake as a user installs it."""
