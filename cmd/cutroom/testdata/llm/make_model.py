"""Writes a tiny language model with random weights, as a file that llama.cpp reads.

Its vocabulary is the 256 bytes, so that any text is tokens, and what it answers
means nothing. The seed is fixed: the model is the same each time.
"""

import sys

import gguf
import numpy

CONTEXT, WIDTH, HIDDEN, HEADS, LAYERS = 512, 64, 128, 4, 2
CONTROL, UNKNOWN, BYTE = gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN, gguf.TokenType.BYTE

tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256

writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("tiny")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(HIDDEN)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(len(tokens))
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types(types)
writer.add_unk_token_id(0)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_add_space_prefix(False)
writer.add_chat_template(
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
)

random = numpy.random.default_rng(1)


def tensor(name, *shape):
    writer.add_tensor(name + ".weight", random.normal(0, 0.3, shape).astype(numpy.float32))


def norm(name):
    writer.add_tensor(name + ".weight", numpy.ones(WIDTH, numpy.float32))


tensor("token_embd", len(tokens), WIDTH)
for layer in range(LAYERS):
    block = f"blk.{layer}."
    norm(block + "attn_norm")
    for part in "attn_q", "attn_k", "attn_v", "attn_output":
        tensor(block + part, WIDTH, WIDTH)
    norm(block + "ffn_norm")
    tensor(block + "ffn_gate", HIDDEN, WIDTH)
    tensor(block + "ffn_up", HIDDEN, WIDTH)
    tensor(block + "ffn_down", WIDTH, HIDDEN)
norm("output_norm")
tensor("output", len(tokens), WIDTH)

writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
