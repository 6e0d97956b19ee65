"""Measures a running engine server on this machine: python -m bench [--url URL] [--models MODEL …]

For each model, it prints the seconds for an edit of a five-second clip at 720p or of an image, the seconds to load its
pipelines, the server's peak memory since its start, the longest time without a message, and the computed seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
from PIL import Image

from cutroom_engine.frames import Frame
from cutroom_engine.write import VideoWriter, write_image

# The kind of each model's edits, with a reference or without.
_MODELS = {
    "gen-2.5": ("edit", True),
    "gen-restyle-2": ("restyle", False),
    "gen-vton-3.6": ("try-on", True),
    "gen-pro-t2v": ("text-to-video", False),
    "gen-image-2": ("image", False),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8090")
    parser.add_argument("--models", nargs="+", choices=_MODELS, default=list(_MODELS))
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    width, height = map(int, given.size.split("x"))
    print(f"{'':16}{'edit':>9}{'load':>9}{'peak':>11}{'silence':>9}{'computed':>10}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models:
            print(f"{model:16}{_measured(given.url, _request(Path(folder), model, width, height, given.seconds))}")
    return 0


def _request(folder: Path, model: str, width: int, height: int, seconds: float) -> dict[str, Any]:
    """Returns a typical request for the model, and creates its files."""
    kind, referenced = _MODELS[model]
    image, output = kind == "image", folder / f"{model}.{'png' if kind == 'image' else 'mp4'}"
    still = {"path": str(folder / "picture.png"), "mime": "image/png"}
    clip = {"path": str(folder / "clip.mp4"), "mime": "video/mp4"}
    write_image(still["path"], _noise(width, height))
    with VideoWriter(clip["path"], width, height, 25) as writer:
        for _ in range(round(25 * seconds)):
            writer.write(_noise(width, height))
    return {
        "job": "bench",
        "model": model,
        "kind": kind,
        "prompt": "a quiet winter evening",
        "seed": 7,
        "data": still if image else None if kind == "text-to-video" else clip,
        "reference": still if referenced else None,
        "width": width,
        "height": height,
        "fps": 0 if image else 25,
        "duration": 0 if image else seconds,
        "folder": str(folder),
        "output": str(output),
    }


def _measured(url: str, request: dict[str, Any]) -> str:
    """Performs the run, and returns the figures as a text."""
    edit = request | {"lengths": [request["duration"]], "reference": request["reference"] is not None}
    with _post(f"{url}/v1/estimates", {"edits": [edit]}) as answer:
        (computed,) = json.load(answer)["estimates"]
    longest, last, line = 0.0, time.monotonic(), dict[str, Any]()
    try:
        with _post(f"{url}/v1/runs", request) as answer:
            for text in answer:
                now, line = time.monotonic(), json.loads(text)
                longest, last = max(longest, now - last), now
    except HTTPError as error:
        line = json.load(error)
    if "result" not in line:
        return f"  {line['error']['message']}"
    stages = line["result"]["stages"]
    with urlopen(f"{url}/metrics") as answer:
        found = re.search(rb'memory_bytes{kind="allocated_peak"} (\S+)', answer.read())
    peak = f"{float(found[1]) / 2**30:.1f} GiB" if found else "-"
    took = sum(stages.values()) - stages["load"]
    expected = f"{computed['seconds'][0]:.0f} s" if computed else "-"
    return f"{took:>7.1f} s{stages['load']:>7.1f} s{peak:>11}{longest:>7.1f} s{expected:>10}"


def _post(url: str, body: dict[str, Any]) -> Any:
    return urlopen(Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}))


def _noise(width: int, height: int) -> Frame:
    # Draw a coarse pattern, so that the encoded clip is small.
    drawn = np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(drawn).resize((width, height), Image.Resampling.BICUBIC), dtype=np.uint8)


if __name__ == "__main__":
    sys.exit(main())
