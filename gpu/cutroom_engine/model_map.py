"""The model map: a file that assigns pipelines to the catalog's models. models.yaml and models-live.yaml explain the
keys."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from .shapes import SHAPES
from .styles import STYLES
from .windows import Window

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_bytes(text: Any) -> Any:
    """Parses a number of bytes, such as 24GiB."""
    found = re.fullmatch(r"([0-9]+)(KiB|MiB|GiB)?", str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a size such as 24GiB")
    return int(found[1]) * _UNITS.get(found[2] or "", 1)


Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Precision = Literal["bf16", "fp16", "fp32"]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SchedulerRow(_Row):
    class_name: str = Field(alias="class")
    options: dict[str, Any] = {}


class LoraRow(_Row):
    file: str = Field(pattern=r"^/.*[^/]\.safetensors$")

    @property
    def folder(self) -> str:
        """The folder that contains the file."""
        return self.file.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]


class ControlRow(_Row):
    kind: Literal["line", "depth"]
    model: str | None = None

    @model_validator(mode="after")
    def _check(self) -> ControlRow:
        if (self.kind == "depth") != (self.model is not None):
            raise ValueError(f"model: {self.kind} {'needs a model' if self.kind == 'depth' else 'takes no model'}")
        return self


class MaskRow(_Row):
    model: str
    labels: list[str] = Field(min_length=1)
    cutout: list[str] = []


class PipelineRow(_Row):
    class_name: str = Field(alias="class")
    weights: str = Field(min_length=1)
    shape: str
    control: ControlRow | None = None
    mask: MaskRow | None = None
    loras: list[LoraRow] = []
    text: str = Field(min_length=1)
    storage: Literal["fp8"] | None = None
    precision: Precision = "bf16"
    scheduler: SchedulerRow | None = None
    steps: int = Field(ge=1, le=1000)
    shift: float | None = Field(default=None, gt=0, le=100)
    guidance: float | None = Field(default=None, ge=0, le=100)
    sigmas: list[Annotated[float, Field(gt=0, le=1)]] = []
    negative: str | None = None
    multiple: int = Field(default=16, ge=1)
    pixels: int | None = Field(default=None, ge=1)
    fps: int | None = Field(default=None, ge=1, le=120)
    window: Window = Window()

    @model_validator(mode="after")
    def _check(self) -> PipelineRow:
        if self.class_name not in STYLES:
            raise ValueError(f"class: {self.class_name} is not one of {', '.join(sorted(STYLES))}")
        style = STYLES[self.class_name]
        if style.conditioned != (self.control is not None or self.mask is not None):
            wanted = "needs a control or a mask" if style.conditioned else "takes no control and no mask"
            raise ValueError(f"{self.class_name} {wanted}")
        if self.shape not in SHAPES:
            raise ValueError(f"shape: {self.shape} is not one of {', '.join(SHAPES)}")
        if self.sigmas and (len(self.sigmas) != self.steps or self.sigmas != sorted(set(self.sigmas), reverse=True)):
            raise ValueError("sigmas: there must be one for each step, each lower than the one before")
        if self.negative is not None and style.negative is None:
            raise ValueError(f"negative: {self.class_name} takes no negative prompt")
        if style.guidance == "true_cfg_scale" and (self.guidance or 0) > 1 and self.negative is None:
            raise ValueError(f"guidance: {self.class_name} supports it only with a negative prompt")
        return self

    @property
    def takes(self) -> Literal["video", "text", "image"]:
        """The kind of input that the pipeline edits."""
        return STYLES[self.class_name].takes

    @property
    def references(self) -> bool:
        """Whether the pipeline accepts reference images."""
        return STYLES[self.class_name].references

    @property
    def shared(self) -> Hashable:
        """Returns a key. Rows with the same key share their weights in memory."""
        return self.weights, self.precision, self.storage, tuple(lora.file for lora in self.loras)


class LivePipelineRow(_Row):
    weights: str = Field(min_length=1)
    vae: str | None = None
    precision: Precision = "fp16"
    steps: int = Field(ge=1, le=50)
    strength: float = Field(default=0.5, gt=0, le=1)
    pixels: int = Field(default=512 * 512, ge=64 * 64, le=1920 * 1088)
    memory: Bytes = 0

    @model_validator(mode="after")
    def _check(self) -> LivePipelineRow:
        if int(self.steps * self.strength) < 1:
            raise ValueError("strength: steps times strength must be at least one step")
        return self


class LiveMap(_Row):
    sessions: int = Field(default=1, ge=1, le=64)
    pipelines: dict[str, LivePipelineRow] = {}
    models: dict[str, str] = {}

    @model_validator(mode="after")
    def _check(self) -> LiveMap:
        for name, pipeline in self.models.items():
            if pipeline not in self.pipelines:
                raise ValueError(f"models.{name}: there is no pipeline {pipeline}")
        return self

    @property
    def memory(self) -> int:
        """How many bytes of device memory are reserved for live models."""
        return sum(row.memory for row in self.pipelines.values())


def engine_name(weights: str, pipeline: str) -> str:
    """Returns the engine name that a job or a session shows: the name of the weights, or else of the pipeline."""
    return (weights.rstrip("/").rpartition("/")[2] or pipeline)[:64]


class ModelRow(_Row):
    pipeline: str
    first: str | None = None


class CardRow(_Row):
    name: str
    gib: float = Field(gt=0)
    teraflops: float = Field(gt=0)


class ModelMap(_Row):
    """The pipelines that a server serves."""

    # The card's speed, in 10^12 operations per second, if it is known.
    teraflops: float | None = None
    # How many bytes of its memory the pipelines may use, if that is known.
    memory: int | None = None
    pipelines: dict[str, PipelineRow] = {}
    models: dict[str, ModelRow] = {}
    live: LiveMap = LiveMap()


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


class ModelFile(_Row):
    """The content of the file. Each pipeline has one or more rows, the best first. cards.choose selects one."""

    cards: list[CardRow] = []
    # Where the weights come from: for a folder, the repository and the revision in the Hugging Face hub.
    hub: dict[str, Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+@[\w.-]+$")]] = {}
    pipelines: dict[str, Annotated[list[PipelineRow], BeforeValidator(_listed), Field(min_length=1)]] = {}
    models: dict[str, ModelRow] = {}
    live: LiveMap = LiveMap()

    @model_validator(mode="after")
    def _check(self) -> ModelFile:
        for name, row in self.models.items():
            for pipeline in (row.pipeline, row.first):
                if pipeline is not None and pipeline not in self.pipelines:
                    raise ValueError(f"models.{name}: there is no pipeline {pipeline}")
            if row.first and not all(one.takes == "image" for one in self.pipelines[row.first]):
                raise ValueError(f"models.{name}: {row.first} edits no images")
            if row.first and not all(STYLES[one.class_name].conditioned for one in self.pipelines[row.pipeline]):
                raise ValueError(f"models.{name}: {row.pipeline} cannot follow a first frame")
        return self


class ModelMapError(Exception):
    """The file is invalid. The message is a single line."""


# Maps for any machine use this folder for weights.
_FOLDER = "/models/"


def read_model_file(path: Path, family: str, weights: str = "") -> ModelFile:
    """Reads the file and replaces $family with the model family's name.

    If weights is given, this folder replaces /models.
    """
    try:
        source = yaml.safe_load(path.read_text(encoding="utf-8").replace("$family", family))
        models = ModelFile.model_validate(source)
    except OSError as error:
        raise ModelMapError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ModelMapError(f"{path}: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelMapError(f"{path}: {where}: {first['msg']}") from error
    if not weights:
        return models
    moved = _moved(models.model_dump(by_alias=True, exclude_defaults=True), weights.rstrip("/") + "/")
    return ModelFile.model_validate(moved)


def _moved(value: Any, weights: str) -> Any:
    """Returns the value with another folder in place of /models."""
    if isinstance(value, str):
        return weights + value.removeprefix(_FOLDER) if value.startswith(_FOLDER) else value
    if isinstance(value, dict):
        return {_moved(key, weights): _moved(part, weights) for key, part in value.items()}
    return [_moved(part, weights) for part in value] if isinstance(value, list) else value
