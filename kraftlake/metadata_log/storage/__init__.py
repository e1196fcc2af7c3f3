"""Where a lake lies and how its files are made durable: local disks and object stores."""
