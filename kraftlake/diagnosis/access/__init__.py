"""Who may do what, then and now: the authorizer's answers on an image's ACLs, and the changes of an answer."""
