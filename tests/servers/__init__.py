"""Real PostgreSQL servers for tests and bench: found, started, asked, stopped. Nothing of the product is used here."""
