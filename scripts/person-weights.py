#!/usr/bin/env python3
"""Writes shared/engine/preview/person/weights.f16, the weights of a network that finds people.

Usage: pip download --no-deps mediapipe==0.10.14 && pip install numpy tflite==2.18.0
       scripts/person-weights.py mediapipe-0.10.14-*.whl

The source is MediaPipe's selfie segmentation for landscapes (Apache-2.0). The file lists the
convolutions in the order of computation. Each has four little-endian uint16: kernel side, inputs
(1 if depthwise), outputs, and the stride; then weights [output][row][column][input], or
[row][column][output] if depthwise, and biases, as float16.
"""

import hashlib
import pathlib
import struct
import sys
import zipfile

import numpy
import tflite

NAME = "mediapipe/modules/selfie_segmentation/selfie_segmentation_landscape.tflite"
SHA256 = "a77d03f4659b9f6b6c1f5106947bf40e99d7655094b6527f214ea7d451106edd"
DTYPES = {tflite.TensorType.FLOAT32: "<f4", tflite.TensorType.FLOAT16: "<f2"}

content = zipfile.ZipFile(sys.argv[1]).read(NAME)
if hashlib.sha256(content).hexdigest() != SHA256:
    sys.exit(f"{NAME} has another SHA-256 than {SHA256}")
model = tflite.Model.GetRootAs(content)
graph = model.Subgraphs(0)


def constant(index):
    tensor = graph.Tensors(index)
    data = model.Buffers(tensor.Buffer()).DataAsNumpy()
    return numpy.frombuffer(data.tobytes(), DTYPES[tensor.Type()]).reshape(tensor.ShapeAsNumpy())


halves = {}  # the output of each conversion from float16
out = bytearray()
for number in range(graph.OperatorsLength()):
    operator = graph.Operators(number)
    code = model.OperatorCodes(operator.OpcodeIndex())
    code = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    inputs, output = operator.InputsAsNumpy(), operator.OutputsAsNumpy()[0]
    if code == tflite.BuiltinOperator.DEQUANTIZE:
        halves[output] = inputs[0]
    elif code in (tflite.BuiltinOperator.CONV_2D, tflite.BuiltinOperator.DEPTHWISE_CONV_2D, tflite.BuiltinOperator.CUSTOM):
        weights, bias = (constant(halves.get(index, index)) for index in inputs[1:3])
        depthwise = code == tflite.BuiltinOperator.DEPTHWISE_CONV_2D
        stride = graph.Tensors(inputs[0]).Shape(1) // graph.Tensors(output).Shape(1)
        out += struct.pack("<4H", weights.shape[1], 1 if depthwise else weights.shape[3], bias.size, stride)
        out += weights.astype("<f2").tobytes() + bias.astype("<f2").tobytes()
pathlib.Path("shared/engine/preview/person/weights.f16").write_bytes(out)
