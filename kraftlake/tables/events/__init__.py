"""The table `events/`: what happened in a cluster, a readable row for each thing."""
