"""What a broker answers clients and followers, API by API. Source: kafka.server.KafkaApis."""
