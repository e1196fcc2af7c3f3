"""A broker's answers to clients and followers, API by API. Source: kafka.server.KafkaApis."""
