"""A whole cluster of a lake: its controllers and brokers as processes, started, watched and ended together."""
