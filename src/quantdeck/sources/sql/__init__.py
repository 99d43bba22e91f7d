"""Concrete sources over a relational database. All SQL of the project that is not a migration is in here."""
