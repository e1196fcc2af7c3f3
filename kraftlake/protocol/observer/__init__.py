"""An observer of a quorum: fetches the metadata log from the leader like a broker, and is listed nowhere."""
