"""The publishers of brokers and controllers, which act on each new image, and the state that they keep for requests."""
