"""The table `cluster_metrics/`: Kafka's controller counts over time."""
