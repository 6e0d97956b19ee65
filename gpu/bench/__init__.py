"""Measures the engine server with a full-size transformer of random weights.

Random weights take as long to compute as trained ones."""
