"""Everything that is wrong with a cluster at one offset: a list of checks, and what they find."""
