"""The forms that a person reads: each module draws one kind of answer from its JSON form."""
