"""The change between two images: `MetadataDelta`, its nine parts, and the local changes of each broker. No I/O."""
