"""The table `local_changes/`: the local changes of each broker in each published metadata delta."""
