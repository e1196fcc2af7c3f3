"""A broker that replicates and serves no clients: `kraftlake broker`."""
