"""Measures the engine server."""
