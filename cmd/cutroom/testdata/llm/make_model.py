"""Writes tiny models with random weights into a folder, in llama.cpp's format: chat.gguf generates text,
embeddings.gguf makes vectors, ranks.gguf scores documents.

Their vocabulary is the 256 bytes, so they accept any text. Their output has no meaning. The seed is fixed, so every
run writes the same models.
"""

import itertools
import pathlib
import sys

import gguf
import numpy

CONTEXT, WIDTH, HIDDEN, HEADS, LAYERS = 1 << 17, 64, 128, 4, 2
CONTROL, UNKNOWN, BYTE = gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN, gguf.TokenType.BYTE

TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
TYPES = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
CHAT = """{%- if tools %}
{{- '<|im_start|>system\\nTools:' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\nCall one by <run>{"name": ..., "arguments": ...}</run;<|im_end;\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<run>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</run;' }}
{%- endfor %}
{{- '<|im_end;\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
# Token pairs that the models have learned: after the first, the second follows. So a reply begins with the mark of a
# tool call and ends after one call, as a grammar that requires tool calls demands.
LEARNED = [(f"<0x{ord(one):02X}>", f"<0x{ord(other):02X}>") for one, other in itertools.pairwise("\n<run>")]
LEARNED.append((f"<0x{ord(';'):02X}>", "</s>"))
RANK = "{query}\n{document}"


def describe(writer, pooling):
    """Writes the model's metadata."""
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(WIDTH // HEADS)
    writer.add_value_length(WIDTH // HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(TYPES)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template([{"name": "default", "template": CHAT}, {"name": "rerank", "template": RANK}])
    if pooling is not None:
        writer.add_pooling_type(pooling)
    if pooling == gguf.PoolingType.RANK:
        writer.add_classifier_output_labels(["yes", "no"])


def write(path, pooling=None):
    """Writes a model that generates text, or if pooling is set, a pooling model."""
    writer = gguf.GGUFWriter(path, "qwen3")
    random = numpy.random.default_rng(1)
    describe(writer, pooling)

    def weights(*shape):
        return random.normal(0, 0.3, shape).astype(numpy.float32)

    def tensor(name, values):
        writer.add_tensor(name + ".weight", values)

    def norm(name, width=WIDTH):
        writer.add_tensor(name + ".weight", numpy.ones(width, numpy.float32))

    # Each learned pair has its own dimension, which the layers leave unchanged.
    apart = len(LEARNED)
    embedding, output = weights(len(TOKENS), WIDTH), weights(len(TOKENS), WIDTH)
    embedding[:, :apart] = output[:, :apart] = 0
    for i, (before, after) in enumerate(LEARNED):
        embedding[TOKENS.index(before), i], output[TOKENS.index(after), i] = 30, 8
    tensor("token_embd", embedding)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        norm(block + "attn_norm")
        norm(block + "attn_q_norm", WIDTH // HEADS)
        norm(block + "attn_k_norm", WIDTH // HEADS)
        norm(block + "ffn_norm")
        for part in "attn_q", "attn_k", "attn_v":
            reading = weights(WIDTH, WIDTH)
            reading[:, :apart] = 0
            tensor(block + part, reading)
        for part in "ffn_gate", "ffn_up":
            reading = weights(HIDDEN, WIDTH)
            reading[:, :apart] = 0
            tensor(block + part, reading)
        for part, width in ("attn_output", WIDTH), ("ffn_down", HIDDEN):
            writing = weights(WIDTH, width)
            writing[:apart] = 0
            tensor(block + part, writing)
    norm("output_norm")
    tensor("output", output)
    if pooling == gguf.PoolingType.RANK:
        tensor("cls.output", weights(2, WIDTH))

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


folder = pathlib.Path(sys.argv[1])
write(folder / "chat.gguf")
write(folder / "embeddings.gguf", gguf.PoolingType.MEAN)
write(folder / "ranks.gguf", gguf.PoolingType.RANK)
