"""Layouts from files: the core tells facts, and pure functions here decide what they mean."""
