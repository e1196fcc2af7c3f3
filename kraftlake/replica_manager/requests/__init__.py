"""The answers of a broker to producers, consumers and followers, and the delayed requests."""
