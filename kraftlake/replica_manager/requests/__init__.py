"""What a broker answers to producers, consumers and followers, and the requests that wait for an answer."""
