"""Record types that Kafka does not have, declared at run time by files in Kafka's message format."""
