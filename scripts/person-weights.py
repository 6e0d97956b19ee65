#!/usr/bin/env python3
"""Writes shared/engine/preview/person/*.f16, the weights of networks that find people.

Usage: pip download --no-deps mediapipe==0.10.14 && pip install numpy tflite==2.18.0
       scripts/person-weights.py mediapipe-0.10.14-*.whl

The weights are from the two networks of MediaPipe's selfie segmentation (Apache-2.0). A file contains the network's
convolutions in the order of computation. Each begins with four little-endian uint16: the kernel's side, the
number of inputs (1 if depthwise), the number of outputs, and the stride. Then follow the weights, as
[output][row][column][input] or, if depthwise, [row][column][output], and the biases. Both are float16.
"""

import hashlib
import pathlib
import struct
import sys
import zipfile

import numpy
import tflite

FOLDER = "mediapipe/modules/selfie_segmentation/"
SOURCES = {
    "landscape.f16": ("selfie_segmentation_landscape.tflite", "a77d03f4659b9f6b6c1f5106947bf40e99d7655094b6527f214ea7d451106edd"),
    "square.f16": ("selfie_segmentation.tflite", "9ee168ec7c8f2a16c56fe8e1cfbc514974cbbb7e434051b455635f1bd1462f5c"),
}
CONVOLUTIONS = (
    tflite.BuiltinOperator.CONV_2D,
    tflite.BuiltinOperator.DEPTHWISE_CONV_2D,
    tflite.BuiltinOperator.CUSTOM,  # the custom operator is a transposed convolution
)
DTYPES = {tflite.TensorType.FLOAT32: "<f4", tflite.TensorType.FLOAT16: "<f2"}



def constant(model, index):
    tensor = model.Subgraphs(0).Tensors(index)
    data = model.Buffers(tensor.Buffer()).DataAsNumpy()
    return numpy.frombuffer(data.tobytes(), DTYPES[tensor.Type()]).reshape(tensor.ShapeAsNumpy())


def weights(model):
    graph = model.Subgraphs(0)
    halves = {}  # maps each conversion's output tensor to its float16 input
    out = bytearray()
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        code = model.OperatorCodes(operator.OpcodeIndex())
        code = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        inputs, output = operator.InputsAsNumpy(), operator.OutputsAsNumpy()[0]
        if code == tflite.BuiltinOperator.DEQUANTIZE:
            halves[output] = inputs[0]
        elif code in CONVOLUTIONS:
            weights, bias = (constant(model, halves.get(index, index)) for index in inputs[1:3])
            depthwise = code == tflite.BuiltinOperator.DEPTHWISE_CONV_2D
            stride = graph.Tensors(inputs[0]).Shape(1) // graph.Tensors(output).Shape(1)
            out += struct.pack("<4H", weights.shape[1], 1 if depthwise else weights.shape[3], bias.size, stride)
            out += weights.astype("<f2").tobytes() + bias.astype("<f2").tobytes()
    return out


wheel = zipfile.ZipFile(sys.argv[1])
for target, (name, expected) in SOURCES.items():
    content = wheel.read(FOLDER + name)
    if hashlib.sha256(content).hexdigest() != expected:
        sys.exit(f"{name} has another SHA-256 than {expected}")
    pathlib.Path("shared/engine/preview/person", target).write_bytes(weights(tflite.Model.GetRootAs(content)))
