"""The model map: a file that assigns pipelines to the catalog's models."""

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


class WindowRow(_Row):
    """Describes a windows.Window."""

    frames: int = 81
    overlap: int = 9
    step: int = 4

    def window(self) -> Window:
        """Returns the window that the row describes."""
        return Window(self.frames, self.overlap, self.step)


class SchedulerRow(_Row):
    """A diffusers scheduler: its class, and the settings that differ from the configuration of the weights."""

    class_name: str = Field(alias="class")
    options: dict[str, Any] = {}


class LoraRow(_Row):
    """A LoRA: a safetensors file in a folder or an S3 location, and its strength."""

    file: str = Field(pattern=r"^(/|s3://[^/]+/).*[^/]\.safetensors$")
    weight: float = Field(default=1.0, gt=-4, lt=4)

    @property
    def folder(self) -> str:
        """The folder or the S3 location that contains the file."""
        return self.file.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]


class ControlRow(_Row):
    """The picture that the result follows. It is derived from each frame of the clip: its lines, or its depth. The
    depth is estimated by a model from transformers, in a folder or an S3 location (s3://bucket/prefix)."""

    kind: Literal["line", "depth"]
    model: str | None = None

    @model_validator(mode="after")
    def _check(self) -> ControlRow:
        if (self.kind == "depth") != (self.model is not None):
            raise ValueError(f"model: {self.kind} {'needs a model' if self.kind == 'depth' else 'takes no model'}")
        return self


class MaskRow(_Row):
    """The area of the clip that is repainted: the parts with these labels, which a segmentation model from
    transformers finds. The rest of the picture is kept."""

    model: str
    labels: list[str] = Field(min_length=1)


class PipelineRow(_Row):
    """A diffusers pipeline: its weights, and how it runs."""

    class_name: str = Field(alias="class")
    # A folder in diffusers' layout, or the S3 location (s3://bucket/prefix) of such a folder.
    weights: str = Field(min_length=1)
    # The model's size, a name in shapes.SHAPES, from which memory and run times are computed.
    shape: str
    # Only for WanVACEPipeline: the control, the mask, or both.
    control: ControlRow | None = None
    mask: MaskRow | None = None
    loras: list[LoraRow] = []
    # A folder with text_encoder and tokenizer, which several pipelines share. The encoder is on the device only while
    # it encodes.
    text: str | None = None
    # fp8 stores the transformer's weights in half the memory. Computation uses the row's precision.
    storage: Literal["fp8"] | None = None
    precision: Precision = "bf16"
    scheduler: SchedulerRow | None = None
    steps: int = Field(ge=1, le=1000)
    # The shift of the scheduler's noise levels, and the strength of guidance. A guidance of 1.0 means no guidance, as
    # models distilled for few steps require.
    shift: float | None = Field(default=None, gt=0, le=100)
    guidance: float | None = Field(default=None, ge=0, le=100)
    # The noise level of each step, for models that are distilled for exactly these levels.
    sigmas: list[Annotated[float, Field(gt=0, le=1)]] = []
    # The negative prompt. It has no effect if guidance is off.
    negative: str | None = None
    # The model's limits: sides are multiples of the first number, and a picture has at most the second number of
    # pixels.
    multiple: int = Field(default=16, ge=1)
    pixels: int | None = Field(default=None, ge=1)
    # The frame rate at which the model works. The default is the result's frame rate.
    fps: int | None = Field(default=None, ge=1, le=120)
    window: WindowRow = WindowRow()

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
        self.window.window()
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
        loras = tuple((lora.file, lora.weight) for lora in self.loras)
        return self.weights, self.precision, self.storage, loras

    @property
    def all_weights(self) -> list[str]:
        """All folders or S3 locations that the row loads files from."""
        beside = [row.model for row in (self.control, self.mask) if row is not None and row.model is not None]
        beside += [self.text] if self.text else []
        return [self.weights, *beside, *dict.fromkeys(lora.folder for lora in self.loras)]


class LivePipelineRow(_Row):
    """A StableDiffusionImg2ImgPipeline that edits live frames in a few steps."""

    # A folder in diffusers' layout, or the S3 location (s3://bucket/prefix) of such a folder.
    weights: str = Field(min_length=1)
    # The location of an AutoencoderTiny that replaces the VAE of the weights, because with one step the VAE takes
    # most of a frame's time.
    vae: str | None = None
    precision: Precision = "fp16"
    # The number of steps over all noise levels, and the fraction of them that is computed. A higher fraction starts
    # from more noise, and keeps less of the picture.
    steps: int = Field(ge=1, le=50)
    strength: float = Field(default=0.5, gt=0, le=1)
    # The maximum number of pixels of a picture.
    pixels: int = Field(default=512 * 512, ge=64 * 64, le=1920 * 1088)
    # How much device memory the pipeline needs, including pictures. This memory is not available to other pipelines.
    memory: Bytes = 0

    @model_validator(mode="after")
    def _check(self) -> LivePipelineRow:
        if int(self.steps * self.strength) < 1:
            raise ValueError("strength: steps times strength must be at least one step")
        return self

    @property
    def all_weights(self) -> list[str]:
        """All folders or S3 locations that the row loads files from."""
        return [self.weights, *([self.vae] if self.vae else [])]


class LiveMap(_Row):
    """The models that edit live frames. They are loaded when the server starts, and stay in memory."""

    # The maximum number of concurrent sessions. Their frames take turns.
    sessions: int = Field(default=1, ge=1, le=64)
    pipelines: dict[str, LivePipelineRow] = {}
    # The name of each model's pipeline.
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


class ModelRow(_Row):
    """The pipelines that serve a model."""

    pipeline: str
    # The pipeline for jobs with a reference image, if the other pipeline does not accept one.
    with_reference: str | None = None


class CardRow(_Row):
    """A GPU card: the memory that it reports, in GiB, and its speed with transformers, in 10^12 operations per
    second."""

    name: str
    gib: float = Field(gt=0)
    teraflops: float = Field(gt=0)


class ModelMap(_Row):
    """The pipelines that a server serves."""

    # The card's speed, in 10^12 operations per second, if it is known.
    teraflops: float | None = None
    pipelines: dict[str, PipelineRow] = {}
    models: dict[str, ModelRow] = {}
    live: LiveMap = LiveMap()

    @property
    def all_weights(self) -> list[str]:
        """All folders or S3 locations that the map's rows load files from."""
        live = [weights for row in self.live.pipelines.values() for weights in row.all_weights]
        return list(dict.fromkeys([*live, *(one for row in self.pipelines.values() for one in row.all_weights)]))


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
            for pipeline in (row.pipeline, row.with_reference):
                if pipeline is not None and pipeline not in self.pipelines:
                    raise ValueError(f"models.{name}: there is no pipeline {pipeline}")
            if row.with_reference and not all(one.references for one in self.pipelines[row.with_reference]):
                raise ValueError(f"models.{name}: {row.with_reference} takes no reference image")
        return self


class ModelMapError(Exception):
    """The file is invalid. The message is a single line."""


# Maps for any machine use this folder for weights.
_FOLDER = "/models/"


def read_model_file(path: Path, family: str, weights: str = "") -> ModelFile:
    """Reads the file and replaces $family with the model family's name.

    If weights is given, this folder or S3 location replaces /models.
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
