#!/usr/bin/env python3
"""Serves the model in a GGUF file with llama.cpp's own HTTP server, which listens only on localhost.

llm-server.py routes MODEL                      prints the routes for the model's row in the catalog
llm-server.py serve MODEL CONTEXT CALLS PORT    serves it until a stop signal

Up to CALLS requests run at the same time, each with its own context of CONTEXT tokens. LLM_THREADS is the number of
threads (one per processor). Callers need the key in LLM_KEY. Without a key, any web page in a browser on this machine
could call the server.
"""

import os
import signal
import sys

import gguf
import xllamacpp

# Values of llama.h's pooling type: NONE means a model that generates text, RANK one that ranks documents.
NONE, RANK = 0, 4


def pooling(model: str) -> int | None:
    """Returns a model's pooling type, or None for a model that generates text."""
    for name, field in gguf.GGUFReader(model).fields.items():
        if name.endswith(".pooling_type"):
            kind = int(field.contents())
            return None if kind == NONE else kind
    return None


def routes(model: str) -> str:
    kind = pooling(model)
    if kind is None:
        # Omit "responses": the indexes that OpenAI's clients need are missing from llama.cpp's events, so the gateway
        # translates instead.
        return "[chat, completions, messages, count_tokens]"
    return "[rerank]" if kind == RANK else "[embeddings]"


def serve(model: str, context: int, calls: int, port: int) -> None:
    stop = {signal.SIGINT, signal.SIGTERM}
    # The server's threads inherit this signal mask, so that only this thread receives the signals.
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
        # Read a text in one batch, however long it is.
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
