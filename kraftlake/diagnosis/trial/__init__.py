"""What the controller would do if brokers or racks were lost, brokers were restarted or partitions were reassigned."""
