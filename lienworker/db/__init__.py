"""The database: its connection, its one write transaction, its clock, small stored values, and its schema."""
