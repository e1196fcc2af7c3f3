"""The judgement of a log by the public specifications of Kafka: named properties, each with its source."""
