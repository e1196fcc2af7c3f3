"""How a follower fetches from its leader, and how a replica is copied to another log directory."""
