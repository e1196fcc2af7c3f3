"""Storage of a lake on local disks and in object stores, and the durability of its files."""
