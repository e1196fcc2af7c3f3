"""A broker that replicates and serves nobody: `kraftlake broker`."""
