"""Writes the models of the ready-made workflows as tiny checkpoints with random weights.

python checkpoints.py COMFYUI MODELS

COMFYUI is ComfyUI's folder. Its classes determine which weights a model has, and its Python must run this script.
MODELS is the folder from which ComfyUI loads models. The files have the names that the workflows expect, so the
workflows run unchanged. They work only in a ComfyUI that has loaded the neighboring custom_nodes.
"""

import io
import json
import os
import sys

import torch
from safetensors.torch import save_file


def random_weights(model):
    """Returns weights that keep activations near 1. They are the same in every run."""
    generator = torch.Generator().manual_seed(1)
    weights = {}
    for name, weight in model.state_dict().items():
        if name.endswith(("gamma", "scale", "norm.weight")) or "norm" in name and weight.ndim == 1 and "bias" not in name:
            weights[name] = torch.ones(weight.shape)
        elif weight.ndim < 2:
            weights[name] = torch.zeros(weight.shape)
        else:
            weights[name] = torch.randn(weight.shape, generator=generator) * weight[0].numel() ** -0.5
    return weights


def lora(layer):
    """Returns a LoRA for a layer with 128 inputs and outputs, in the format of the published LoRAs."""
    generator = torch.Generator().manual_seed(2)
    return {
        f"{layer}.lora_down.weight": torch.randn((2, 128), generator=generator),
        f"{layer}.lora_up.weight": torch.randn((128, 2), generator=generator) * 0.1,
        f"{layer}.alpha": torch.tensor(2.0),
    }


def models():
    """Yields each file's path in the folder of models, and the file's weights."""
    import comfy.ops
    import comfy.text_encoders
    from comfy_extras.frame_interpolation_models.ifnet import IFNet
    from comfy.ldm.qwen_image.model import QwenImageTransformer2DModel
    from comfy.ldm.wan.model import WanModel
    from comfy.ldm.wan.vae import WanVAE
    from comfy.text_encoders.llama import Qwen25_7BVLI
    from comfy.text_encoders.t5 import T5

    ops = {"operations": comfy.ops.disable_weight_init, "dtype": torch.float32, "device": None}
    # Wan has 128 channels per attention head.
    wan = {"dim": 128, "ffn_dim": 128, "num_heads": 1, "num_layers": 1, **ops}
    for name in ("bernini_r_high_noise", "bernini_r_low_noise", "t2v_high_noise_14B", "t2v_low_noise_14B"):
        yield f"diffusion_models/wan2.2_{name}_fp8_scaled", random_weights(WanModel(**wan))
    # These models also get the latent and the mask of the given pictures.
    for name in ("i2v_high_noise_14B", "i2v_low_noise_14B"):
        yield f"diffusion_models/wan2.2_{name}_fp8_scaled", random_weights(WanModel(in_dim=36, **wan))
    yield "diffusion_models/qwen_image_edit_2511_fp8mixed", random_weights(QwenImageTransformer2DModel(num_layers=1, **ops))
    for name in ("lightx2v_T2V_14B_cfg_step_distill_v2_lora_rank64_bf16", "wan2.2_t2v_lightx2v_4steps_lora_v1.1_high_noise",
                 "wan2.2_t2v_lightx2v_4steps_lora_v1.1_low_noise", "wan2.2_i2v_lightx2v_4steps_lora_v1_high_noise",
                 "wan2.2_i2v_lightx2v_4steps_lora_v1_low_noise"):
        yield f"loras/{name}", lora("diffusion_model.blocks.0.self_attn.q")
    yield "loras/Qwen-Image-Edit-2511-Lightning-4steps-V1.0-bf16", lora("transformer_blocks.0.attn.to_q")

    autoencoder = random_weights(
        WanVAE(z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=2, attn_scales=[], temperal_downsample=[False, True, True]))
    yield "vae/wan_2.1_vae", autoencoder
    yield "vae/qwen_image_vae", autoencoder

    yield "frame_interpolation/rife_v4.26", random_weights(IFNet(channels=(16, 16, 16, 16, 16)))

    yield "text_encoders/qwen_2.5_vl_7b_fp8_scaled", random_weights(Qwen25_7BVLI({}, **ops))
    with open(os.path.join(comfy.text_encoders.__path__[0], "umt5_config_xxl.json")) as file:
        umt5 = random_weights(T5(json.load(file), **ops))
    umt5["spiece_model"] = torch.frombuffer(bytearray(vocabulary()), dtype=torch.uint8)
    # ComfyUI recognizes this text encoder by its last layer. The layer is not loaded.
    umt5["encoder.block.23.layer.1.DenseReluDense.wi_1.weight"] = torch.zeros(10240, 1)
    yield "text_encoders/umt5_xxl_fp8_e4m3fn_scaled", umt5


def vocabulary():
    """Returns a vocabulary in which each token is a character."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abcdefghijklmnopqrstuvwxyz ,.JPEG"]), model_writer=model, vocab_size=64, model_type="char",
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False, minloglevel=2)
    return model.getvalue()


def main():
    comfyui, folder = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    # By default, ComfyUI reads the command line when it is imported. Give it these arguments instead.
    sys.argv = [sys.argv[0], "--cpu"]
    sys.path[:0] = [comfyui, os.path.join(here, "custom_nodes")]
    import comfy.options

    comfy.options.enable_args_parsing()
    import small_models  # noqa: F401

    for name, weights in models():
        path = os.path.join(folder, name + ".safetensors")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        save_file({name: weight.contiguous() for name, weight in weights.items()}, path)


if __name__ == "__main__":
    main()
