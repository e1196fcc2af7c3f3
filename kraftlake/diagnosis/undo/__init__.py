"""Plans that bring a past state of a cluster back, and their application."""
