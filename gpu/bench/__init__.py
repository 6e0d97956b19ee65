"""Measures the engine server with a full-size transformer of random weights, which
compute as long as trained ones."""
