"""The part of the ground floor that knows Django: events, transitions, leases, the database's clock."""
