"""The log of a live quorum: mirrored for a question, or followed into a lake."""
