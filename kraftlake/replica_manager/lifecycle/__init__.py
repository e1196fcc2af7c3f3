"""The life of a broker in its cluster: registration, heartbeats, controlled shutdown."""
