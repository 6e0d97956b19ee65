#!/usr/bin/env python3
"""Serves the model in a GGUF file with llama.cpp's own HTTP server, only on this machine.

llm-server.py routes MODEL                      prints the routes for the model's row in the catalog
llm-server.py serve MODEL CONTEXT CALLS PORT    serves it until a stop signal

CALLS run at once, each with a separate context of CONTEXT tokens, by LLM_THREADS threads, by
default one for each processor. Callers need the key in LLM_KEY: otherwise any page in a browser of
this machine could call the server.
"""

import os
import signal
import sys

import gguf
import xllamacpp

# Pooling types of models for embeddings or ranks (llama.h).
NONE, RANK = 0, 4


def pooling(model: str) -> int | None:
    """Returns a model's pooling type, or None for a generating model."""
    for name, field in gguf.GGUFReader(model).fields.items():
        if name.endswith(".pooling_type"):
            kind = int(field.contents())
            return None if kind == NONE else kind
    return None


def routes(model: str) -> str:
    kind = pooling(model)
    if kind is None:
        # Its Responses events lack indexes that OpenAI's clients need, so the gateway translates them.
        return "[chat, completions, messages, count_tokens]"
    return "[rerank]" if kind == RANK else "[embeddings]"


def serve(model: str, context: int, calls: int, port: int) -> None:
    stop = {signal.SIGINT, signal.SIGTERM}
    # The server's threads inherit this mask, so that only this thread receives the signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.ui = False
    params.offline = True
    params.api_keys = [os.environ["LLM_KEY"]]
    threads = int(os.environ.get("LLM_THREADS") or os.cpu_count() or 1)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_parallel = calls
    params.n_ctx = context * calls
    kind = pooling(model)
    if kind is not None:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type(kind)
        # A text is read in one piece.
        params.n_batch = params.n_ubatch = context
    server = xllamacpp.Server(params)
    signal.sigwait(stop)
    del server


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["routes", path]:
            print(routes(path))
        case ["serve", path, *numbers] if len(numbers) == 3:
            serve(path, *map(int, numbers))
        case _:
            sys.exit(__doc__)
