"""Restores a cluster's controllers from an image: the facts on brokers' disks, the state to restore, its files."""
