"""Logs of replicas: batches, producers, transactions and leader epochs of a log, and a broker's log directories."""
