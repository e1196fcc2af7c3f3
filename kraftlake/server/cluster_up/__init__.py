"""A whole cluster of a lake: its controllers and brokers as processes that are started, watched and ended together."""
