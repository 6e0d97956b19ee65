"""Measures an engine server, and creates the table of cards."""
