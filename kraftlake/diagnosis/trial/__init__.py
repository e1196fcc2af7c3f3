"""The controller's reaction if brokers or racks were lost, brokers were restarted or partitions were reassigned."""
