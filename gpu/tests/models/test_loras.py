"""Tests the LoRAs, the scheduler's shift and the guidance that the model map sets."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch

from cutroom_engine.pipeline import WeightsError

from .test_diffusion import nothing, pipeline, same, shot, small_conditions  # noqa: F401  # a fixture
from .tiny import make


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name in ("WanPipeline", "WanVACEPipeline", "QwenImageEditPlusPipeline"):
        make(name, folder)
    return folder


def lora(folder: Path, name: str = "few.safetensors", seed: int = 1) -> str:
    """Writes a LoRA in the format of the LoRAs published for Wan."""
    drawn = torch.Generator().manual_seed(seed)
    layers: dict[str, torch.Tensor] = {}
    for block in range(3):
        for layer in ("self_attn.q", "self_attn.o", "cross_attn.k"):
            of = f"diffusion_model.blocks.{block}.{layer}"
            layers[f"{of}.lora_down.weight"] = torch.randn((2, 24), generator=drawn)
            layers[f"{of}.lora_up.weight"] = torch.randn((24, 2), generator=drawn)
            layers[f"{of}.alpha"] = torch.tensor(2.0)
    safetensors.torch.save_file(layers, folder / name)
    return str(folder / name)


@pytest.mark.parametrize("name", ["WanPipeline", "WanVACEPipeline"])
def test_lora_changes_only_the_result(weights: Path, tmp_path: Path, name: str) -> None:
    def made(*loras: dict[str, object]) -> list[object]:
        return pipeline(weights, name, loras=list(loras)).run(shot(name), nothing, nothing)  # type: ignore[return-value]

    one, other = lora(tmp_path), lora(tmp_path, "other.safetensors", seed=2)
    plain, full = made(), made({"file": one})
    assert not same(plain, full)
    assert not same(full, made({"file": one}, {"file": other}))
    assert same(full, made({"file": one})), "the result depends on the LoRAs loaded before"
    assert same(plain, made()), "a LoRA left something behind"


def distilled(folder: Path) -> str:
    """Writes a LoRA that changes every layer, and also biases and norms, as LoRAs for distilled models do."""
    drawn = torch.Generator().manual_seed(4)
    wide = {"ffn.0": (24, 32), "ffn.2": (32, 24)}
    layers: dict[str, torch.Tensor] = {}

    def change(of: str, taken: int, made: int) -> None:
        layers[f"diffusion_model.{of}.lora_down.weight"] = torch.randn((2, taken), generator=drawn)
        layers[f"diffusion_model.{of}.lora_up.weight"] = torch.randn((made, 2), generator=drawn)
        layers[f"diffusion_model.{of}.diff_b"] = torch.randn(made, generator=drawn)

    for block in range(3):
        for layer in (f"{kind}.{part}" for kind in ("self_attn", "cross_attn") for part in "qkvo"):
            change(f"blocks.{block}.{layer}", 24, 24)
        for layer, (taken, made) in wide.items():
            change(f"blocks.{block}.{layer}", taken, made)
        layers[f"diffusion_model.blocks.{block}.self_attn.norm_q.diff"] = torch.zeros(24)
        layers[f"diffusion_model.blocks.{block}.norm3.diff_b"] = torch.zeros(24)
    change("text_embedding.0", 32, 24)
    change("text_embedding.2", 24, 24)
    change("time_embedding.0", 256, 24)
    change("time_embedding.2", 24, 24)
    change("time_projection.1", 24, 144)
    change("head.head", 24, 64)
    safetensors.torch.save_file(layers, folder / "distilled.safetensors")
    return str(folder / "distilled.safetensors")


@pytest.mark.parametrize("name", ["WanPipeline", "WanVACEPipeline"])
def test_lora_changes_all_its_layers(weights: Path, tmp_path: Path, name: str) -> None:
    """The rows in our maps use the LoRAs for text to video with VACE too."""
    plain = pipeline(weights, name)._pipe.transformer.state_dict()
    changed = pipeline(weights, name, loras=[{"file": distilled(tmp_path)}])._pipe.transformer.state_dict()
    assert plain.keys() == changed.keys()
    apart = {key for key in plain if not torch.equal(plain[key], changed[key])}
    # Each of the three blocks has eight attention layers and two other layers. Six more layers are outside of the
    # blocks.
    assert len([key for key in apart if key.endswith(".weight")]) == 3 * 10 + 6
    assert len([key for key in apart if key.endswith(".bias")]) == 3 * 10 + 6
    assert not [key for key in apart if "vace" in key or "norm" in key]


def test_qwen_lora_is_applied(weights: Path, tmp_path: Path) -> None:
    """The LoRA has the format of the published LoRAs for four steps."""
    drawn = torch.Generator().manual_seed(5)
    layers: dict[str, torch.Tensor] = {}
    for block in range(3):
        for layer in ("attn.to_q", "attn.add_k_proj", "attn.to_out.0"):
            of = f"transformer_blocks.{block}.{layer}"
            layers[f"{of}.lora_down.weight"] = torch.randn((2, 16), generator=drawn)
            layers[f"{of}.lora_up.weight"] = torch.randn((16, 2), generator=drawn)
            layers[f"{of}.alpha"] = torch.tensor(1.0)
    safetensors.torch.save_file(layers, tmp_path / "qwen.safetensors")
    name, row = "QwenImageEditPlusPipeline", {"file": str(tmp_path / "qwen.safetensors")}
    plain = pipeline(weights, name).run(shot(name), nothing, nothing)
    assert not same(plain, pipeline(weights, name, loras=[row]).run(shot(name), nothing, nothing))


def test_unusable_loras_are_reported(weights: Path, tmp_path: Path) -> None:
    safetensors.torch.save_file(
        {
            "transformer.elsewhere.lora_A.weight": torch.ones(2, 24),
            "transformer.elsewhere.lora_B.weight": torch.ones(24, 2),
        },
        tmp_path / "wrong.safetensors",
    )
    with pytest.raises((WeightsError, ValueError), match=r"elsewhere|none of its layers"):
        pipeline(weights, "WanPipeline", loras=[{"file": str(tmp_path / "wrong.safetensors")}])


@pytest.mark.parametrize(("kind", "option"), [("UniPCMultistepScheduler", "flow_shift"), (None, "flow_shift")])
def test_shift_applies_to_every_scheduler(weights: Path, kind: str | None, option: str) -> None:
    more = {"scheduler": {"class": kind}} if kind else {}
    assert pipeline(weights, "WanPipeline", shift=8.0, **more)._pipe.scheduler.config[option] == 8
    euler = pipeline(weights, "WanPipeline", shift=8.0, scheduler={"class": "FlowMatchEulerDiscreteScheduler"})
    assert euler._pipe.scheduler.config["shift"] == 8


def test_row_sets_the_noise_levels(weights: Path) -> None:
    fields = {"scheduler": {"class": "FlowMatchLCMScheduler"}, "guidance": 1.0, "steps": 3}
    model = pipeline(weights, "WanPipeline", sigmas=[1.0, 0.757, 0.522], **fields)
    steps: list[float] = []
    made = model.run(shot("WanPipeline"), steps.append, nothing)
    assert model._pipe.scheduler.timesteps.tolist() == pytest.approx([1000, 757, 522])
    assert steps == pytest.approx([1 / 3, 2 / 3, 1])
    assert same(made, model.run(shot("WanPipeline"), nothing, nothing)), "the noise does not depend on the seed"
    assert not same(made, pipeline(weights, "WanPipeline", **fields).run(shot("WanPipeline"), nothing, nothing))


def test_guidance_uses_the_negative_prompt(weights: Path) -> None:
    def made(**changes: object) -> list[object]:
        return pipeline(weights, "WanPipeline", **changes).run(shot("WanPipeline"), nothing, nothing)  # type: ignore[return-value]

    guided = made(guidance=5.0)
    assert not same(guided, made(guidance=1.0))
    assert not same(guided, made(guidance=5.0, negative="a summer morning"))
    assert same(made(guidance=1.0), made(guidance=1.0, negative="a summer morning")), "the negative prompt matters"
