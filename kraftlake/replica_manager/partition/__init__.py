"""One replica on this broker: its role, its epochs, its in-sync replicas, and its work as leader and as follower."""
