"""What is remembered and known, in SQLite."""
