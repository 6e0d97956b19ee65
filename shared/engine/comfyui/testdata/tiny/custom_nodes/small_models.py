"""Shrinks models whose sizes are fixed in ComfyUI's code. (It derives the sizes of other models from their weights.)

This package has no nodes. ComfyUI imports it like other packages of custom nodes, and checkpoints.py imports it to
write weights of the right size.
"""

import comfy.ldm.qwen_image.model
import comfy.ldm.wan.vae
import comfy.text_encoders.llama
import comfy.text_encoders.qwen_vl
import comfy.text_encoders.t5

NODE_CLASS_MAPPINGS = {}

# The number of tokens that the text encoders distinguish.
VOCABULARY = 512


def always(cls, **sizes):
    """Makes a class use these sizes, whatever its caller passes."""
    whole = cls.__init__

    def small(self, *args, **kwargs):
        whole(self, *args, **{**kwargs, **sizes})

    cls.__init__ = small


always(comfy.ldm.wan.vae.WanVAE, dim=8)
# Skip the VAE's attention: Qwen-Image's nodes encode a megapixel, for which attention takes minutes on a CPU.
comfy.ldm.wan.vae.AttentionBlock.forward = lambda self, x, *_, **__: x
always(comfy.ldm.qwen_image.model.QwenImageTransformer2DModel, num_attention_heads=1)
always(comfy.text_encoders.qwen_vl.Qwen2VLVisionTransformer, hidden_size=64, intermediate_size=64, num_heads=2,
       num_layers=1)
# Keep four key heads, because ComfyUI recognizes Qwen-Image's text encoder by them.
always(comfy.text_encoders.llama.Qwen25_7BVLI_Config, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
       num_key_value_heads=4, vocab_size=VOCABULARY)

whole_t5 = comfy.text_encoders.t5.T5.__init__


def small_t5(self, config, *args, **kwargs):
    whole_t5(self, {**config, "d_ff": 64, "num_heads": 1, "num_layers": 1, "vocab_size": VOCABULARY}, *args, **kwargs)


comfy.text_encoders.t5.T5.__init__ = small_t5

whole_qwen = comfy.text_encoders.llama.Qwen25_7BVLI.__init__


def small_qwen(self, *args, **kwargs):
    whole_qwen(self, *args, **kwargs)
    # ComfyUI's tokenizer for this model has 150,000 tokens, so map them to the small vocabulary.
    embed = self.model.embed_tokens.forward
    self.model.embed_tokens.forward = lambda tokens, **kwargs: embed(tokens % VOCABULARY, **kwargs)


comfy.text_encoders.llama.Qwen25_7BVLI.__init__ = small_qwen
