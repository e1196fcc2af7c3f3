"""The human-readable forms: each module draws one kind of answer from its JSON form."""
