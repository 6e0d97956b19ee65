"""Fetches weights from the Hugging Face hub.

    python -m cutroom_engine.prepare --download MAP [--card NAME] [--non-commercial] [--yes]

fetches the files that this machine's card (or the named card of the map) needs, to the folders that the map names. It
first prints the license and the size of each repository, the free disk space and the memory that loading needs, and
on a terminal asks whether to continue. It continues an interrupted download. Weights in fp32 are converted to bf16 if
the map asks for bf16.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cards import Card, choose, find_card
from .files import missing
from .model_map import LivePipelineRow, ModelFile, ModelMap, ModelMapError, PipelineRow, read_model_file
from .settings import SettingError, read_settings
from .shapes import SHAPES

# Licenses, by their names in the hub, that allow commercial use.
_FREE = {"apache-2.0", "mit", "bsd-3-clause"}

# The ends of the names of files that are needed. Other formats of the weights are left out.
_KINDS = (".safetensors", ".json", ".txt", ".model", ".jinja")

Wanted = Callable[[str], bool]


class DownloadError(Exception):
    """The weights cannot be fetched. The message says why."""


@dataclass
class _Repository:
    """A repository and the files that are needed from it."""

    name: str
    revision: str
    folder: Path
    # Whether weights in fp32 are converted to bf16.
    shrink: bool
    license: str = "unknown"
    files: dict[str, int] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """How many bytes are not on the disk yet."""
        return sum(size for name, size in self.files.items() if not (self.folder / name).is_file())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m cutroom_engine.prepare", description="Fetches weights.")
    parser.add_argument("--download", type=Path, metavar="MAP", required=True, help="the model map")
    parser.add_argument("--card", help="fetch the weights for this card of the map, instead of this machine's")
    parser.add_argument(
        "--non-commercial", action="store_true", help="accept licenses that forbid or limit commercial use"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before the download")
    given = parser.parse_args(arguments)
    try:
        settings = read_settings(os.environ)
        file = read_model_file(given.download, settings.family, settings.weights_source)
        if given.card is not None:
            models = choose(file, _named(file, given.card), settings.memory)
        else:
            models = choose(file, _card(file, settings.device), settings.memory, missing)
        download(file, models, non_commercial=given.non_commercial, ask=not given.yes and sys.stdin.isatty())
    except (SettingError, ModelMapError, DownloadError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _named(file: ModelFile, name: str) -> Card:
    if (row := next((row for row in file.cards if row.name == name), None)) is None:
        raise DownloadError(f"--card: {name} is not one of {', '.join(row.name for row in file.cards)}")
    return Card(row.name, int(row.gib * 2**30))


def _card(file: ModelFile, device: str) -> Card | None:
    # The engine server measures the free memory with PyTorch too, whose own memory is then in use already.
    with suppress(ImportError):
        import torch  # noqa: F401
    if (card := find_card(device)) is None and file.cards and device != "cpu":
        raise DownloadError("nvidia-smi lists no card. Name one: --card L40S, or with make: CARD=L40S")
    if card is not None:
        print(f"{card.name}, {card.free / 2**30:.1f} GiB free")
    return card


def download(file: ModelFile, models: ModelMap, *, non_commercial: bool, ask: bool = False) -> None:
    """Fetches the weights of the pipelines to their folders."""
    # Import this late, because it takes a second.
    import httpx2
    import huggingface_hub

    api = huggingface_hub.HfApi()
    try:
        found = list(_found(api, file, models))
        for one in found:
            print(f"{one.name}: {one.license}, {one.left / 1e9:.1f} GB to fetch to {one.folder}")
        doubtful = [f"{one.name} ({one.license})" for one in found if one.license not in _FREE]
        if doubtful and not non_commercial:
            raise DownloadError(
                f"The license may forbid commercial use: {', '.join(doubtful)}. Read it, then add --non-commercial."
            )
        _check_disk(found)
        print(f"Loading needs up to {_machine_memory(found, models) / 1e9:.0f} GB of the machine's own memory.")
        if ask and any(one.left for one in found) and input("Fetch the files? [y/N] ").lower() not in ("y", "yes"):
            raise DownloadError("Nothing was fetched.")
        for one in found:
            huggingface_hub.snapshot_download(
                one.name, revision=one.revision, local_dir=one.folder, allow_patterns=list(one.files)
            )
            if one.shrink:
                for name in one.files:
                    _shrink(one.folder / name)
    except (httpx2.HTTPError, OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise DownloadError(f"The download from {huggingface_hub.constants.ENDPOINT} failed: {said}") from error
    rows: list[PipelineRow | LivePipelineRow] = [*models.pipelines.values(), *models.live.pipelines.values()]
    for row in rows:
        if absent := missing(row):
            raise DownloadError(f"The repository has no {absent[0].name}, so {absent[0]} is still missing.")
    print("All weights are on the disk.")


def _found(api: Any, file: ModelFile, models: ModelMap) -> Iterator[_Repository]:
    shrunk = {row.weights for row in models.pipelines.values() if row.precision == "bf16"}
    for folder, rules in _wanted(models).items():
        if folder not in file.hub:
            if Path(folder).is_dir():
                continue  # these weights come from elsewhere
            raise DownloadError(f"hub: the map names no repository for {folder}")
        name, _, revision = file.hub[folder].partition("@")
        info = api.model_info(name, revision=revision, files_metadata=True)
        one = _Repository(name, info.sha, Path(folder), shrink=folder in shrunk)
        one.license = str((info.card_data or {}).get("license") or "unknown")
        one.files = {
            item.rfilename: item.size or 0 for item in info.siblings if any(rule(item.rfilename) for rule in rules)
        }
        if not one.files:
            raise DownloadError(f"The repository {name} has none of the files that are needed in {folder}.")
        yield one


def _wanted(models: ModelMap) -> dict[str, list[Wanted]]:
    """Returns the rules by which files are needed, for each folder."""
    rules: defaultdict[str, list[Wanted]] = defaultdict(list)

    def parts(*, without: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> Wanted:
        def wanted(name: str) -> bool:
            part, slash, _ = name.partition("/")
            if not slash:
                return name == "model_index.json" and not only
            return part not in without and (not only or part in only) and name.endswith(_KINDS) and ".fp16." not in name

        return wanted

    def model(name: str) -> bool:
        return "/" not in name and name.endswith(_KINDS)

    text = ("text_encoder", "tokenizer")
    for row in models.pipelines.values():
        rules[row.weights].append(parts(without=text))
        rules[row.text].append(parts(only=text))
        for of in (row.control, row.mask):
            if of is not None and of.model is not None:
                rules[of.model].append(model)
        for lora in row.loras:
            rules[lora.folder].append(lora.name.__eq__)
    for live in models.live.pipelines.values():
        rules[live.weights].append(parts(without=("vae",) if live.vae else ()))
        if live.vae:
            rules[live.vae].append(model)
    return rules


def _check_disk(found: list[_Repository]) -> None:
    left = sum(one.left for one in found)
    folder = found[0].folder if found else Path("/")
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    print(f"{left / 1e9:.1f} GB to fetch, {free / 1e9:.1f} GB free")
    if left > free:
        raise DownloadError(f"The disk of {folder} has {free / 1e9:.1f} GB free, and {left / 1e9:.1f} GB are needed.")


def _machine_memory(found: list[_Repository], models: ModelMap) -> float:
    """Returns how many bytes text encoders need, which stay in the machine's memory, and the largest transformer that
    is compressed there."""
    encoders = sum(size for one in found for name, size in one.files.items() if name.startswith("text_encoder/"))
    compressed = (2 * SHAPES[row.shape].transformer for row in models.pipelines.values() if row.storage)
    return encoders + max(compressed, default=0.0)


def _shrink(path: Path) -> None:
    """Converts a file with weights in fp32 to bf16."""
    if path.suffix != ".safetensors":
        return
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(path, "pt") as weights:
        tensors = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118  # not a dictionary
    if not any(tensor.dtype == torch.float32 for tensor in tensors.values()):
        return
    status = path.stat()
    smaller = path.with_name(path.name + ".bf16")
    halved = {name: one.bfloat16() if one.dtype == torch.float32 else one for name, one in tensors.items()}
    save_file(halved, smaller, metadata={"format": "pt"})
    # The hub's client fetches a file again if it is newer than the client's note about it.
    os.utime(smaller, ns=(status.st_atime_ns, status.st_mtime_ns))
    smaller.replace(path)


if __name__ == "__main__":
    sys.exit(main())
