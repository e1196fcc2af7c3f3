"""The part of Kafka's network protocol for clients of the quorum: the leader and its high watermark."""
