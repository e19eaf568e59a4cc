"""Jobs, due times, webhook events, unattended runs and their delivery will live here."""
