"""Logs of replicas in files, in Kafka's layout."""
