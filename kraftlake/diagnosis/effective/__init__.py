"""The configs and quotas in effect at an offset, each with the layer that gave it."""
