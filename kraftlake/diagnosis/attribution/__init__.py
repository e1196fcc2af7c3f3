"""Attribution: the principals whose requests made the changes of a metadata log, by authorizer logs and audit files."""
