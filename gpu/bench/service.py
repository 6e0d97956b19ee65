"""Measures a job through the entire service: HTTP, the worker, and the engine server."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import uvicorn

from cutroom_engine.metrics import Metrics
from cutroom_engine.model_map import ModelMap
from cutroom_engine.pipeline import Pipeline
from cutroom_engine.residents import Residents
from cutroom_engine.runs import Runner
from cutroom_engine.server import Server, create_app
from cutroom_engine.weights import Weights

# The catalog's model that the job uses.
MODEL = "gen-2.1"


def job_seconds(program: Path, clip: Path, models: ModelMap, pipeline: Pipeline, folder: Path) -> float:
    """Returns how long it takes from submitting the clip to receiving the last byte of the result, in seconds."""
    with _engine(models, pipeline, folder) as engine, _service(program, engine, folder) as client:
        began = time.perf_counter()
        with clip.open("rb") as data:
            answer = client.post(f"/v1/jobs/{MODEL}", files={"data": data}, data={"prompt": "winter", "seed": "7"})
        answer.raise_for_status()
        job = answer.json()["job_id"]
        while (state := client.get(f"/v1/jobs/{job}").raise_for_status().json())["status"] not in (
            "completed",
            "failed",
        ):
            time.sleep(0.05)
        if state["status"] == "failed":
            raise RuntimeError(f"the job failed: {state['error']}")
        client.get(f"/v1/jobs/{job}/content").raise_for_status()
        return time.perf_counter() - began


@contextmanager
def _engine(models: ModelMap, pipeline: Pipeline, folder: Path) -> Iterator[str]:
    metrics, weights = Metrics(), Weights(folder / "weights")
    runner = Runner(models, Residents(models.pipelines, None, lambda _, __: pipeline), metrics, weights=weights)
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(uvicorn.Config(create_app(runner, metrics), log_config=None, timeout_graceful_shutdown=5), runner)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        weights.close()


@contextmanager
def _service(program: Path, engine: str, folder: Path) -> Iterator[httpx2.Client]:
    key = "ck_" + secrets.token_hex(16)
    address, inference = (f"127.0.0.1:{_free_port()}" for _ in range(2))
    settings = {
        "CUTROOM_ENGINE": engine,
        "CUTROOM_ADDR": address,
        "CUTROOM_INFERENCE_ADDR": inference,
        "CUTROOM_DATA": str(folder / "data"),
        "CUTROOM_DEV_KEY": key,
    }
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen([program, "dev"], env=os.environ | settings, stdout=log, stderr=log)
        try:
            with httpx2.Client(base_url=f"http://{address}", headers={"x-api-key": key}, timeout=600) as client:
                _wait_until_healthy(client, process)
                yield client
        finally:
            process.terminate()
            process.wait()


def _wait_until_healthy(client: httpx2.Client, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise RuntimeError("the service does not start")
        try:
            if client.get("/healthz").status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError("the service is not healthy")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
