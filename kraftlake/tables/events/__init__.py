"""The table `events/`: the events of a cluster, a readable row for each thing that changed."""
