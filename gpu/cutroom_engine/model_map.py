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
Attention = Literal["cudnn", "flash", "efficient", "math", "flash3", "sage"]


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


class PosesRow(_Row):
    """The models that find the person in a picture: an object detector, such as RT-DETR, and a ViTPose, both from
    transformers. Each is a folder, or an S3 location (s3://bucket/prefix)."""

    detector: str
    estimator: str


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


GgufFile = Annotated[str, Field(pattern=r"^(/|s3://[^/]+/).*[^/]\.gguf$")]


class ControlRow(_Row):
    """The picture that the result follows. It is derived from each frame of the clip, such as its lines, its
    luminance, its depth or the person's pose. The depth is estimated by a model from transformers, in a folder or an
    S3 location (s3://bucket/prefix)."""

    kind: Literal["line", "gray", "depth", "pose"]
    model: str | None = None

    @model_validator(mode="after")
    def _check(self) -> ControlRow:
        if (self.kind == "depth") != (self.model is not None):
            raise ValueError(f"model: {self.kind} {'needs a model' if self.kind == 'depth' else 'takes no model'}")
        return self


class MaskRow(_Row):
    """The area of the clip that is repainted: the person, parts found by a segmentation model, or a box in fractions
    of the picture's sides. The rest of the picture is kept."""

    of: Literal["person", "parts", "box"]
    model: str | None = None
    labels: list[str] = []
    # The edges: left, top, right and bottom.
    box: tuple[float, float, float, float] = (0.2, 0.1, 0.8, 1.0)

    @model_validator(mode="after")
    def _check(self) -> MaskRow:
        if (self.of == "parts") != (self.model is not None and self.labels != []):
            raise ValueError("parts needs model and labels; the other areas need neither")
        left, top, right, bottom = self.box
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise ValueError("box: left, top, right and bottom must be fractions from 0 to 1, in this order")
        return self


class TextRow(_Row):
    """Text encoders and tokenizers in a folder, which several pipelines share."""

    # The folder contains text_encoder and tokenizer, and for FLUX.1 also text_encoder_2 and tokenizer_2, in
    # diffusers' layout.
    weights: str
    # Whether the encoders are on the device only while they encode a prompt.
    leaves: bool = False


class ServerRow(_Row):
    """A vLLM-Omni or SGLang server that runs one model, possibly on several cards."""

    url: str = Field(pattern=r"^https?://[^/?#@]+(/[^?#]*)?$")
    api: Literal["vllm-omni", "sglang"]
    # The names of the server's form fields for the clip and for the reference image. If the second is not set, no
    # reference image is sent.
    clip: Literal["input_reference", "control_reference", "source_video", "video_reference"] = "input_reference"
    reference: Literal["input_reference", "image_reference"] | None = None

    @model_validator(mode="after")
    def _check(self) -> ServerRow:
        if self.api == "sglang" and (self.clip != "input_reference" or self.reference is not None):
            raise ValueError("sglang accepts a clip only as input_reference, and then no reference")
        if self.reference is not None and self.clip in ("input_reference", "video_reference"):
            raise ValueError(f"reference: the server accepts none with {self.clip}")
        return self


class PipelineRow(_Row):
    """A diffusers pipeline: its weights, and how it runs."""

    class_name: str = Field(alias="class")
    # A folder in diffusers' layout, or the S3 location (s3://bucket/prefix) of such a folder.
    weights: str = ""
    # Only for classes whose model runs on another server.
    server: ServerRow | None = None
    # The model's size, a name in shapes.SHAPES, from which run times are computed.
    shape: str | None = None
    # Only for classes that use poses.
    poses: PosesRow | None = None
    # Only for WanVACEPipeline: the control, the mask, or both.
    control: ControlRow | None = None
    mask: MaskRow | None = None
    loras: list[LoraRow] = []
    # The LoRAs that requests may choose from, by name.
    lora_choices: dict[Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,31}$")], LoraRow] = {}
    # A file with the transformer's weights in fewer bits, in a folder or an S3 location.
    gguf: GgufFile | None = None
    text: TextRow | None = None
    # fp8 stores the transformer's weights in half the memory. Computation uses the row's precision.
    storage: Literal["fp8"] | None = None
    # Uses torchao to store the weights in FP8, with a scale for each row of a matrix. fp8 also multiplies in FP8;
    # fp8-weights does not.
    quantize: Literal["fp8", "fp8-weights"] | None = None
    # The attention kernel. PyTorch chooses one if this is absent or does not work on the device.
    attention: Attention | None = None
    # A step skips all blocks after the first if the first block's output has changed by less than this fraction since
    # the step before.
    cache: float | None = Field(default=None, gt=0, lt=1)
    # Whether the first run compiles the transformer's blocks.
    compile: bool = False
    precision: Precision = "bf16"
    # The precision of individual parts of the pipeline, such as {vae: fp32}.
    parts: dict[str, Precision] = {}
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
    # "model" moves each large part to the device only while it computes. "sequential" does so for each layer, which
    # needs less memory and more time.
    offload: Literal["none", "model", "sequential"] = "none"
    # How much device memory the pipeline needs, including activations. If this is not set, no other pipeline stays in
    # memory together with this one.
    memory: Bytes | None = None
    # Whether the VAE processes pictures in tiles, which needs less memory and more time.
    vae_tiling: bool = False
    # The model's limits: sides are multiples of the first number, and a picture has at most the second number of
    # pixels.
    multiple: int = Field(default=16, ge=1)
    pixels: int | None = Field(default=None, ge=1)
    # The frame rate at which the model works. The default is the result's frame rate.
    fps: int | None = Field(default=None, ge=1, le=120)
    # How frames are added if the result's frame rate is higher: interpolated along the motion, or repeated.
    between: Literal["motion", "repeat"] = "motion"
    window: WindowRow = WindowRow()
    # Other arguments of each call, such as {guidance_scale: 5.0}.
    call: dict[str, Any] = {}

    @model_validator(mode="after")
    def _check(self) -> PipelineRow:
        if self.class_name not in STYLES:
            raise ValueError(f"class: {self.class_name} is not one of {', '.join(sorted(STYLES))}")
        style = STYLES[self.class_name]
        if style.served != (self.server is not None):
            raise ValueError(f"server: {self.class_name} {'takes none' if self.server else 'needs one'}")
        if style.served and (own := sorted(self.model_fields_set & _OWN)):
            raise ValueError(f"{own[0]}: not allowed for a model on another server")
        if not style.served and not self.weights:
            raise ValueError("weights: it needs a folder")
        people = style.people or (self.control is not None and self.control.kind == "pose")
        people = people or (self.mask is not None and self.mask.of == "person")
        if people != (self.poses is not None):
            raise ValueError(f"poses: {self.class_name} {'needs' if self.poses is None else 'takes no'} pose models")
        if style.conditioned != (self.control is not None or self.mask is not None):
            wanted = "needs a control or a mask" if style.conditioned else "takes no control and no mask"
            raise ValueError(f"{self.class_name} {wanted}")
        if self.shape is not None and self.shape not in SHAPES:
            raise ValueError(f"shape: {self.shape} is not one of {', '.join(SHAPES)}")
        if self.text is not None and self.offload != "none":
            raise ValueError(f"text: with offload {self.offload} a pipeline has its own text encoder")
        self._check_weights()
        if self.offload != "none" and (key := self._resident_only):
            raise ValueError(f"{key}: not supported for offloaded weights")
        if self.cache is not None:
            self._check_cache(style.caches)
        if self.sigmas and (len(self.sigmas) != self.steps or self.sigmas != sorted(set(self.sigmas), reverse=True)):
            raise ValueError("sigmas: there must be one for each step, each lower than the one before")
        if self.negative is not None and style.negative is None:
            raise ValueError(f"negative: {self.class_name} takes no negative prompt")
        if style.guidance == "true_cfg_scale" and (self.guidance or 0) > 1 and self.negative is None:
            raise ValueError(f"guidance: {self.class_name} supports it only with a negative prompt")
        if repeated := {"num_inference_steps", style.guidance, style.negative} & set(self.call):
            raise ValueError(f"call: {repeated.pop()} has its own key")
        self.window.window()
        return self

    @property
    def _resident_only(self) -> str | None:
        """The first setting that requires the weights to stay on the device, if any."""
        keys = ("storage", "quantize", "cache", "compile")
        return next((key for key in keys if getattr(self, key)), None)

    def _check_weights(self) -> None:
        ways = [key for key in ("gguf", "storage", "quantize") if getattr(self, key)]
        if len(ways) > 1:
            raise ValueError(f"{ways[1]}: cannot be combined with {ways[0]}")
        if self.gguf is not None and (self.loras or self.lora_choices):
            raise ValueError("gguf: these weights do not support LoRAs")
        if self.lora_choices and (ways or self.compile):
            key = ways[0] if ways else "compile"
            raise ValueError(f"{key}: cannot be combined with lora_choices")

    def _check_cache(self, caches: str | None) -> None:
        if caches is None:
            raise ValueError(f"cache: the blocks of {self.class_name} cannot be skipped")
        if caches == "unguided" and (self.guidance is None or self.guidance > 1):
            raise ValueError(f"cache: {self.class_name} supports it only without guidance (guidance: 1.0)")

    @property
    def takes(self) -> Literal["video", "text", "image"]:
        """The kind of input that the pipeline edits."""
        return STYLES[self.class_name].takes

    @property
    def references(self) -> bool:
        """Whether the pipeline accepts reference images."""
        style = STYLES[self.class_name]
        beside = self.server is None or style.takes == "image" or self.server.reference is not None
        return style.references and beside

    @property
    def shared(self) -> Hashable:
        """Returns a key. Rows with the same key share their weights in memory."""
        loras = tuple((lora.file, lora.weight) for lora in self.loras)
        speed = self.storage, self.quantize, self.attention, self.cache, self.compile
        return self.weights, self.gguf, self.precision, tuple(sorted(self.parts.items())), speed, loras

    @property
    def all_weights(self) -> list[str]:
        """All folders or S3 locations that the row loads files from."""
        if self.server is not None:
            return []
        beside = [self.poses.detector, self.poses.estimator] if self.poses else []
        beside += [model for row in (self.control, self.mask) if row is not None and (model := row.model) is not None]
        beside += [self.text.weights] if self.text else []
        files = [*self.loras, *self.lora_choices.values()]
        beside += [self.gguf.rpartition("/")[0]] if self.gguf else []
        return [self.weights, *beside, *dict.fromkeys(lora.folder for lora in files)]


# Settings that apply only to models that this server loads itself.
_OWN = {
    "weights",
    "shape",
    "loras",
    "lora_choices",
    "gguf",
    "text",
    "storage",
    "quantize",
    "attention",
    "cache",
    "compile",
    "precision",
    "parts",
    "scheduler",
    "sigmas",
    "offload",
    "memory",
    "vae_tiling",
}


LiveClass = Literal[
    "StableDiffusionImg2ImgPipeline", "StableDiffusionXLImg2ImgPipeline", "LatentConsistencyModelImg2ImgPipeline"
]


class ImageAdapterRow(_Row):
    """An IP-Adapter, with which a live model follows a reference image: a safetensors file, and the folder that
    contains its CLIPVisionModelWithProjection."""

    file: str = Field(pattern=r"^(/|s3://[^/]+/).*[^/]\.safetensors$")
    encoder: str
    # How strongly the image affects the result.
    scale: float = Field(default=0.6, gt=0, le=1)

    @property
    def folder(self) -> str:
        """The folder or the S3 location that contains the file."""
        return self.file.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]


class LivePipelineRow(_Row):
    """A diffusers pipeline that edits live frames, image to image, in a few steps."""

    class_name: LiveClass = Field(alias="class")
    # A folder in diffusers' layout, or the S3 location (s3://bucket/prefix) of such a folder.
    weights: str = Field(min_length=1)
    # The location of an AutoencoderTiny that replaces the VAE of the weights, because with one step the VAE takes
    # most of a frame's time.
    vae: str | None = None
    precision: Precision = "fp16"
    scheduler: SchedulerRow | None = None
    loras: list[LoraRow] = []
    image: ImageAdapterRow | None = None
    # The number of steps over all noise levels, and the fraction of them that is computed. A higher fraction starts
    # from more noise, and keeps less of the picture. Latent consistency models compute all steps.
    steps: int = Field(ge=1, le=50)
    strength: float = Field(default=0.5, gt=0, le=1)
    # The strength of guidance. Only latent consistency models support guidance without a second pass.
    guidance: float | None = Field(default=None, ge=0, le=30)
    # The model's limits: sides are multiples of the first number, and a picture has at most the second number of
    # pixels.
    multiple: int = Field(default=8, ge=8, le=64, multiple_of=8)
    pixels: int = Field(default=512 * 512, ge=64 * 64, le=1920 * 1088)
    # How much device memory the pipeline needs, including pictures. This memory is not available to other pipelines.
    memory: Bytes = 0

    @model_validator(mode="after")
    def _check(self) -> LivePipelineRow:
        consistency = self.class_name == "LatentConsistencyModelImg2ImgPipeline"
        if not consistency and int(self.steps * self.strength) < 1:
            raise ValueError("strength: steps times strength must be at least one step")
        if not consistency and (self.guidance or 0) > 1:
            raise ValueError(f"guidance: {self.class_name} is for distilled models, which need none")
        return self

    @property
    def all_weights(self) -> list[str]:
        """All folders or S3 locations that the row loads files from."""
        beside = [self.vae] if self.vae else []
        beside += [self.image.folder, self.image.encoder] if self.image else []
        return [self.weights, *beside, *dict.fromkeys(lora.folder for lora in self.loras)]


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
    """The card for which the map is made: its speed with transformers, in 10^12 operations per second."""

    teraflops: float = Field(gt=0)


class ModelMap(_Row):
    """The content of the file."""

    card: CardRow | None = None
    pipelines: dict[str, PipelineRow] = {}
    models: dict[str, ModelRow] = {}
    live: LiveMap = LiveMap()

    @model_validator(mode="after")
    def _check(self) -> ModelMap:
        for name, row in self.models.items():
            for pipeline in (row.pipeline, row.with_reference):
                if pipeline is not None and pipeline not in self.pipelines:
                    raise ValueError(f"models.{name}: there is no pipeline {pipeline}")
            if row.with_reference and not self.pipelines[row.with_reference].references:
                raise ValueError(f"models.{name}: {row.with_reference} takes no reference image")
        return self


class ModelMapError(Exception):
    """The file is invalid. The message is a single line."""


# Maps for any machine use this folder for weights.
_FOLDER = "/models/"


def read_model_map(path: Path, family: str, weights: str = "") -> ModelMap:
    """Reads the file and replaces $family with the model family's name.

    If weights is given, this folder or S3 location replaces /models.
    """
    try:
        source = yaml.safe_load(path.read_text(encoding="utf-8").replace("$family", family))
        models = ModelMap.model_validate(source)
    except OSError as error:
        raise ModelMapError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ModelMapError(f"{path}: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelMapError(f"{path}: {where}: {first['msg']}") from error
    rows = {name: _moved(row, weights) if weights else row for name, row in models.pipelines.items()}
    shown = {name: _moved_live(row, weights) if weights else row for name, row in models.live.pipelines.items()}
    live = models.live.model_copy(update={"pipelines": shown})
    return models.model_copy(update={"pipelines": rows, "live": live})


def _moved_folder(folder: str, weights: str) -> str:
    return f"{weights.rstrip('/')}/{folder.removeprefix(_FOLDER)}" if folder.startswith(_FOLDER) else folder


def _moved_live(row: LivePipelineRow, weights: str) -> LivePipelineRow:
    image = row.image and row.image.model_copy(
        update={"file": _moved_folder(row.image.file, weights), "encoder": _moved_folder(row.image.encoder, weights)}
    )
    return row.model_copy(
        update={
            "weights": _moved_folder(row.weights, weights),
            "vae": row.vae and _moved_folder(row.vae, weights),
            "image": image,
            "loras": [lora.model_copy(update={"file": _moved_folder(lora.file, weights)}) for lora in row.loras],
        }
    )


def _moved(row: PipelineRow, weights: str) -> PipelineRow:
    def moved(folder: str) -> str:
        return _moved_folder(folder, weights)

    def beside(of: ControlRow | MaskRow | None) -> ControlRow | MaskRow | None:
        return of.model_copy(update={"model": moved(of.model)}) if of is not None and of.model is not None else of

    poses = row.poses and PosesRow(detector=moved(row.poses.detector), estimator=moved(row.poses.estimator))
    return row.model_copy(
        update={
            "weights": moved(row.weights),
            "poses": poses,
            "text": row.text and row.text.model_copy(update={"weights": moved(row.text.weights)}),
            "control": beside(row.control),
            "mask": beside(row.mask),
            "loras": [lora.model_copy(update={"file": moved(lora.file)}) for lora in row.loras],
            "lora_choices": {
                name: lora.model_copy(update={"file": moved(lora.file)}) for name, lora in row.lora_choices.items()
            },
            "gguf": row.gguf and moved(row.gguf),
        }
    )
