"""The diagnosis of a cluster at one offset: a list of checks, and their findings."""
