"""Writes pipelines of the real classes, with tiny random weights, to folders."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import torch
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    DepthAnythingConfig,
    DepthAnythingForDepthEstimation,
    Dinov2Config,
    DPTImageProcessorPil,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Tokenizer,
    Qwen2VLImageProcessorPil,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3Config,
    Qwen3ForCausalLM,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SegformerImageProcessorPil,
    UMT5Config,
    UMT5EncoderModel,
)

_WORDS = ["<pad>", "</s>", "<unk>", "a", "quiet", "winter", "evening", "summer", "morning", "."]


def _tokenizer(length: int = 64) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(_WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=length
    )


def _wan_parts(**transformer: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    vae = diffusers.AutoencoderKLWan(
        base_dim=3, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )
    text_encoder = UMT5EncoderModel(
        UMT5Config(
            vocab_size=len(_WORDS),
            d_model=32,
            d_kv=8,
            d_ff=37,
            num_layers=2,
            num_heads=4,
            relative_attention_num_buckets=8,
        )
    )
    kind = transformer.pop("kind", diffusers.WanTransformer3DModel)
    return {
        "vae": vae,
        "text_encoder": text_encoder,
        "tokenizer": _tokenizer(),
        "scheduler": diffusers.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0, num_train_timesteps=1000
        ),
        "transformer": kind(
            patch_size=(1, 2, 2),
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=16,
            out_channels=16,
            text_dim=32,
            freq_dim=256,
            ffn_dim=32,
            num_layers=3,
            cross_attn_norm=True,
            qk_norm="rms_norm_across_heads",
            rope_max_seq_len=128,
            **transformer,
        ),
    }


def _wan() -> Any:
    return diffusers.WanPipeline(**_wan_parts())


def _vace() -> Any:
    parts = _wan_parts(kind=diffusers.WanVACETransformer3DModel, vace_layers=[0, 2], vace_in_channels=96)
    return diffusers.WanVACEPipeline(**parts)


def _qwen_tokenizer() -> tuple[Qwen2Tokenizer, dict[str, int]]:
    """Returns a tokenizer whose tokens are letters, and its vocabulary."""
    vocabulary = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for word in ("endoftext", "im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad"):
        vocabulary[f"<|{word}|>"] = len(vocabulary)
    tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=[])
    tokenizer.add_special_tokens({"additional_special_tokens": [word for word in vocabulary if word.startswith("<|")]})
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer, vocabulary


def _flux2_klein() -> Any:
    torch.manual_seed(0)
    tokenizer, vocabulary = _qwen_tokenizer()
    # The pipeline encodes a prompt with the outputs of layers 9, 18 and 27.
    text = Qwen3Config(
        vocab_size=len(vocabulary),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=28,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=4,
        bos_token_id=vocabulary["<|endoftext|>"],
        eos_token_id=vocabulary["<|im_end|>"],
    )
    return diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=diffusers.AutoencoderKLFlux2(
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            block_out_channels=(4, 4, 4, 4),
            layers_per_block=1,
            latent_channels=1,
            norm_num_groups=1,
        ),
        text_encoder=Qwen3ForCausalLM(text),
        tokenizer=tokenizer,
        transformer=diffusers.Flux2Transformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=24,
            axes_dims_rope=(4, 4, 4, 4),
            guidance_embeds=False,
        ),
        is_distilled=True,
    )


def _qwen_image_edit_plus() -> Any:
    return diffusers.QwenImageEditPlusPipeline(**_qwen_image_parts())


def _qwen_image_parts() -> dict[str, Any]:
    torch.manual_seed(0)
    tokenizer, vocabulary = _qwen_tokenizer()
    text = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": len(vocabulary),
        "bos_token_id": vocabulary["<|endoftext|>"],
        "eos_token_id": vocabulary["<|im_end|>"],
        "rope_parameters": {"mrope_section": [1, 1, 2], "rope_type": "default", "rope_theta": 1e6},
    }
    vision = {"depth": 2, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16}
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision | {"fullatt_block_indexes": [1]},
        image_token_id=vocabulary["<|image_pad|>"],
        video_token_id=vocabulary["<|video_pad|>"],
        vision_start_token_id=vocabulary["<|vision_start|>"],
        vision_end_token_id=vocabulary["<|vision_end|>"],
    )
    return {
        "scheduler": diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        "vae": diffusers.AutoencoderKLQwenImage(
            base_dim=4,
            z_dim=4,
            dim_mult=[1, 2, 2],
            num_res_blocks=1,
            temperal_downsample=[False, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
        "text_encoder": Qwen2_5_VLForConditionalGeneration(config),
        "tokenizer": tokenizer,
        "processor": Qwen2VLProcessor(
            image_processor=Qwen2VLImageProcessorPil(min_pixels=28 * 28, max_pixels=56 * 56),
            tokenizer=tokenizer,
            video_processor=Qwen2VLVideoProcessor(),
        ),
        "transformer": diffusers.QwenImageTransformer2DModel(
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=3,
            attention_head_dim=16,
            num_attention_heads=1,
            joint_attention_dim=16,
            axes_dims_rope=(8, 4, 4),
        ),
    }


def _stable_diffusion() -> Any:
    torch.manual_seed(0)
    return diffusers.StableDiffusionImg2ImgPipeline(
        unet=diffusers.UNet2DConditionModel(
            block_out_channels=(4, 8),
            layers_per_block=1,
            sample_size=8,
            in_channels=4,
            out_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            norm_num_groups=2,
            attention_head_dim=(2, 4),
            use_linear_projection=True,
            cross_attention_dim=32,
        ),
        vae=diffusers.AutoencoderKL(
            block_out_channels=(4, 4, 4, 4),
            in_channels=3,
            out_channels=3,
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=1,
            latent_channels=4,
            norm_num_groups=2,
        ),
        scheduler=diffusers.EulerDiscreteScheduler(timestep_spacing="trailing", steps_offset=1),
        text_encoder=CLIPTextModel(
            CLIPTextConfig(
                vocab_size=len(_WORDS),
                hidden_size=32,
                projection_dim=32,
                intermediate_size=37,
                num_hidden_layers=2,
                num_attention_heads=4,
                bos_token_id=0,
                eos_token_id=1,
            )
        ),
        tokenizer=_tokenizer(77),
        safety_checker=None,
        feature_extractor=None,
        image_encoder=None,
        requires_safety_checker=False,
    )


def make_tiny_vae(folder: Path) -> str:
    """Writes a small VAE that can replace a pipeline's own, and returns its folder."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "encoder_block_out_channels": (4, 4, 4, 4),
        "decoder_block_out_channels": (4, 4, 4, 4),
        "num_encoder_blocks": (1, 1, 1, 1),
        "num_decoder_blocks": (1, 1, 1, 1),
    }
    diffusers.AutoencoderTiny(**sizes).save_pretrained(folder / "tiny-vae")
    return str(folder / "tiny-vae")


MAKERS: dict[str, Callable[[], Any]] = {
    "WanPipeline": _wan,
    "WanVACEPipeline": _vace,
    "Flux2KleinPipeline": _flux2_klein,
    "QwenImageEditPlusPipeline": _qwen_image_edit_plus,
}


def make(class_name: str, folder: Path) -> Path:
    """Writes a pipeline of the class, and returns its folder."""
    path = folder / class_name
    (MAKERS | {"StableDiffusionImg2ImgPipeline": _stable_diffusion})[class_name]().save_pretrained(
        path, safe_serialization=True
    )
    return path


def make_depth(folder: Path) -> str:
    """Writes a depth model, and returns its folder."""
    torch.manual_seed(0)
    backbone = Dinov2Config(
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=28,
        patch_size=14,
        out_features=["stage1", "stage2"],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    model = DepthAnythingForDepthEstimation(
        DepthAnythingConfig(
            backbone_config=backbone,
            reassemble_hidden_size=8,
            reassemble_factors=[4, 2],
            neck_hidden_sizes=[8, 8],
            fusion_hidden_size=8,
            head_hidden_size=8,
        )
    )
    model.save_pretrained(folder / "depth")
    DPTImageProcessorPil(size={"height": 28, "width": 28}).save_pretrained(folder / "depth")
    return str(folder / "depth")


def make_parser(folder: Path) -> str:
    """Writes a segmentation model that labels skin and shirts, and returns its folder."""
    torch.manual_seed(0)
    config = SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 8],
        patch_sizes=[3, 3],
        strides=[4, 2],
        num_attention_heads=[1, 1],
        mlp_ratios=[1, 1],
        decoder_hidden_size=8,
        id2label={0: "Skin", 1: "Shirt"},
    )
    SegformerForSemanticSegmentation(config).save_pretrained(folder / "parser")
    SegformerImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder / "parser")
    return str(folder / "parser")


def fields(class_name: str, folder: Path) -> dict[str, Any]:
    """Returns a pipeline's row in the map, without a control or a mask. The pipeline must be in the folder."""
    weights = str(folder / class_name)
    row = {"class": class_name, "weights": weights, "text": weights, "shape": "wan2.1-vace-1.3b", "steps": 2}
    return row | {"precision": "fp32"}


def make_all(folder: Path) -> Path:
    """Writes all pipelines, and a model map with a pipeline for every model of the catalog. Returns the map's path."""
    window = {"window": {"frames": 9, "overlap": 1, "step": 4}}
    for name in MAKERS:
        make(name, folder)
    pipelines = {name: fields(name, folder) | window for name in MAKERS}
    pipelines["WanVACEPipeline"]["control"] = {"kind": "line"}
    edit = {"pipeline": "WanVACEPipeline", "first": "Flux2KleinPipeline"}
    served: dict[str, Any] = {
        "restyle-2": edit,
        "2.5": edit,
        "2.1": edit,
        "vton-3.6": {"pipeline": "WanVACEPipeline"},
        "vton-3.5": {"pipeline": "WanVACEPipeline"},
        "clip": edit,
        "pro-t2v": {"pipeline": "WanPipeline"},
        # Not Qwen's pipeline, which resizes every picture to a size that takes a minute on a CPU.
        "image-2": {"pipeline": "Flux2KleinPipeline"},
    }
    live = {
        "sessions": 2,
        "pipelines": {"turbo": live_row(folder, pixels=64 * 64)},
        "models": {"$family-2.5": "turbo"},
    }
    path = folder / "models.yaml"
    models = {f"$family-{name}": to for name, to in served.items()}
    path.write_text(yaml.safe_dump({"pipelines": pipelines, "models": models, "live": live}))
    return path


def live_row(folder: Path, **changes: Any) -> dict[str, Any]:
    """Writes a pipeline for live pictures unless it exists, and returns its row in the map."""
    weights = folder / "StableDiffusionImg2ImgPipeline"
    if not weights.is_dir():
        make(weights.name, folder)
    return {"weights": str(weights), "precision": "fp32", "steps": 2, **changes}


if __name__ == "__main__":
    print(make_all(Path(sys.argv[1])))
