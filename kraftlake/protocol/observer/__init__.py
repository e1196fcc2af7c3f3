"""An observer of a quorum: it fetches the metadata log from the leader as a broker does, and is seen by nobody."""
