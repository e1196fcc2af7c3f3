"""The part of an answer that a command line selects: parts of an image, records and events of topics."""
