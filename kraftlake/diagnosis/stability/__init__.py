"""How often something happened to a cluster, hour by hour, against its own past."""
