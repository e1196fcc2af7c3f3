"""Restores a cluster's controllers from an image: what brokers' disks show, the state to restore, its files."""
