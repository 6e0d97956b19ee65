"""The engine server: edits media with diffusion models on one device.

A worker on the same machine sends it runs over HTTP (see protocol.py); media pass
through a disk that the two share."""
