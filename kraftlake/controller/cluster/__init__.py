"""Commands on nodes and features: registration, heartbeats, fencing, unregistration, feature levels, producer ids."""
