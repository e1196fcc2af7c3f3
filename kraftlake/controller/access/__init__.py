"""Commands on access: ACLs, client quotas, SCRAM credentials, delegation tokens."""
