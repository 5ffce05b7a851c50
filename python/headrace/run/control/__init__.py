"""Control flow: which task runs when, with which values, and what is remembered of it."""
