"""Applies LoRAs. A row's own LoRAs are merged into its weights; a LoRA that a request chooses is removed after the
run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .exclusive import LOADING
from .model_map import LivePipelineRow, LoraRow, PipelineRow
from .weights import WeightsError

Folder = Callable[[str], Path]


def fuse(row: PipelineRow | LivePipelineRow, pipe: Any, folder: Folder, part: str = "transformer") -> None:
    """Merges the row's LoRAs into the weights of a part, so that they cost neither time nor memory."""
    if not row.loras:
        return
    names = {f"lora{number}": lora for number, lora in enumerate(row.loras)}
    _attach(row, pipe, folder, names)
    pipe.fuse_lora(components=[part], adapter_names=list(names))
    pipe.unload_lora_weights()


class Choices:
    """The LoRAs that a row's requests may choose from. Only one thread may use it."""

    def __init__(self, row: PipelineRow, pipe: Any, folder: Folder) -> None:
        self._row = row
        self._pipe = pipe
        self._folder = folder

    @contextmanager
    def chosen(self, name: str) -> Iterator[None]:
        """Applies the chosen LoRA inside the context. "" means no LoRA. The LoRA is loaded again for each run,
        because other rows may share the weights."""
        if not name:
            yield
            return
        try:
            _attach(self._row, self._pipe, self._folder, {"chosen": self._row.lora_choices[name]})
            yield
        finally:
            self._pipe.unload_lora_weights()


def _attach(row: PipelineRow | LivePipelineRow, pipe: Any, folder: Folder, loras: Mapping[str, LoraRow]) -> None:
    """Attaches the LoRAs to the layers of the pipeline, and names each adapter after its LoRA."""
    for name, lora in loras.items():
        path = folder(lora.folder) / lora.name
        if not path.is_file():
            raise WeightsError(f"{path}: no such file", retryable=False)
        with LOADING:
            pipe.load_lora_weights(str(path.parent), weight_name=lora.name, adapter_name=name, local_files_only=True)
    active = {name for adapters in pipe.get_list_adapters().values() for name in adapters}
    if missing := [lora.file for name, lora in loras.items() if name not in active]:
        raise WeightsError(f"{missing[0]}: none of its layers is one of {row.class_name}", retryable=False)
    pipe.set_adapters(list(loras), [lora.weight for lora in loras.values()])
