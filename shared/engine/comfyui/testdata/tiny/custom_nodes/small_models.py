"""Makes models small whose sizes ComfyUI fixes: it tells those of others from their weights.

It has no nodes. ComfyUI imports it as it does packs of nodes, and checkpoints.py imports
it to write weights that fit.
"""

import comfy.ldm.qwen_image.model
import comfy.ldm.wan.vae
import comfy.text_encoders.llama
import comfy.text_encoders.qwen_vl
import comfy.text_encoders.t5

NODE_CLASS_MAPPINGS = {}

# How many tokens the text encoders tell apart.
VOCABULARY = 512


def always(cls, **sizes):
    """Makes a class take these sizes instead of those that it is given."""
    whole = cls.__init__

    def small(self, *args, **kwargs):
        whole(self, *args, **{**kwargs, **sizes})

    cls.__init__ = small


always(comfy.ldm.wan.vae.WanVAE, dim=8)
# The nodes of Qwen-Image encode a megapixel, whose attention takes minutes on a processor.
comfy.ldm.wan.vae.AttentionBlock.forward = lambda self, x: x
always(comfy.ldm.qwen_image.model.QwenImageTransformer2DModel, num_attention_heads=1)
always(comfy.text_encoders.qwen_vl.Qwen2VLVisionTransformer, hidden_size=64, intermediate_size=64, num_heads=2,
       num_layers=1)
# By its four heads for keys ComfyUI knows the text encoder of Qwen-Image.
always(comfy.text_encoders.llama.Qwen25_7BVLI_Config, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
       num_key_value_heads=4, vocab_size=VOCABULARY)

whole_t5 = comfy.text_encoders.t5.T5.__init__


def small_t5(self, config, *args, **kwargs):
    whole_t5(self, {**config, "d_ff": 64, "num_heads": 1, "num_layers": 1, "vocab_size": VOCABULARY}, *args, **kwargs)


comfy.text_encoders.t5.T5.__init__ = small_t5

whole_qwen = comfy.text_encoders.llama.Qwen25_7BVLI.__init__


def small_qwen(self, *args, **kwargs):
    whole_qwen(self, *args, **kwargs)
    # Its tokenizer, which is part of ComfyUI, has 150,000 tokens.
    embed = self.model.embed_tokens.forward
    self.model.embed_tokens.forward = lambda tokens, **kwargs: embed(tokens % VOCABULARY, **kwargs)


comfy.text_encoders.llama.Qwen25_7BVLI.__init__ = small_qwen
