"""The part of Kafka's network protocol that a client of the quorum needs: the leader and its high watermark."""
