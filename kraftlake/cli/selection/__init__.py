"""Which part of an answer a command line asks for: parts of an image, records and events of topics."""
