"""Measures the engine server with a full-size transformer of random weights.

They take as long to compute as trained ones."""
