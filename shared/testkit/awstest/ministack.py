"""Runs MiniStack with fixes for tests.

Each event is delivered only once. MiniStack runs a process for each invocation, and returns the same event to every
request for the next event. A function makes such a request after its response, and is stopped only then, so on a busy
machine it might handle the event twice. Lambda returns each event once, and lets the request for the next event wait.

Layers work. MiniStack does not mount layers in /opt for functions on provided runtimes. So a variable that names a
layer's file gets the path where the layer is unpacked.

Each function signs its calls with its own name as the access key, so that a proxy in front of MiniStack knows which
role makes a call.

Stacks are deleted by their ids too, as CDK does.

Expired items stay, as they may for days in DynamoDB, because the records of tests use other clocks.

ALSO_BIND is another address to serve on, with the same port. On Linux the address need not exist yet, because Docker
creates and removes its bridge.
"""

import hashlib
import http.server
import io
import os
import platform
import runpy
import socket
import socketserver
import subprocess
import tempfile
import threading
import zipfile

import hypercorn.config


def give_events_once(handler):
    give = handler.do_GET
    given = []

    def do_get(self):
        if given:
            self.rfile.read()  # wait until the function ends, which closes the connection
            return
        given.append(self.path)
        give(self)

    handler.do_GET = do_get


def made(handler, **arguments):
    super(http.server.BaseHTTPRequestHandler, handler).__init_subclass__(**arguments)
    # MiniStack creates this class for each invocation, in the function that serves it.
    if handler.__name__ == "RuntimeAPIHandler":
        give_events_once(handler)


http.server.BaseHTTPRequestHandler.__init_subclass__ = classmethod(made)

# Maps the SHA-256 of a layer's archive to the folder with its unpacked files.
unpacked = {}
unpacking = threading.Lock()


def unpack(archive):
    digest = hashlib.sha256(archive).hexdigest()
    with unpacking:
        if digest not in unpacked:
            folder = tempfile.mkdtemp(prefix="layer-")
            with zipfile.ZipFile(io.BytesIO(archive)) as files:
                files.extractall(folder)
            unpacked[digest] = folder
        return unpacked[digest]


def layers_of(function):
    """Returns the folders of a function's layers, highest priority first."""
    from ministack.services import lambda_svc  # MiniStack must not be loaded before it runs

    known = lambda_svc._functions.get(function, {}).get("config", {})
    archives = [lambda_svc._resolve_layer_zip(layer["Arn"]) for layer in known.get("Layers", [])]
    return [unpack(archive) for archive in reversed(archives) if archive]


def in_layers(value, layers):
    for layer in layers:
        path = os.path.join(layer, value.removeprefix("/opt/"))
        if os.path.exists(path):
            return path
    return value


def as_lambda_sets(env):
    """Returns the environment that Lambda would set for the function's process."""
    function = env["AWS_LAMBDA_FUNCTION_NAME"]
    layers = layers_of(function)
    mounted = {name: in_layers(value, layers) for name, value in env.items() if value.startswith("/opt/")}
    return {**env, **mounted, "AWS_ACCESS_KEY_ID": function}


start_process = subprocess.Popen.__init__


def start_function(self, *arguments, env=None, **others):
    if env and "AWS_LAMBDA_RUNTIME_API" in env:
        env = as_lambda_sets(env)
    start_process(self, *arguments, env=env, **others)


subprocess.Popen.__init__ = start_function

start_thread = threading.Thread.start


def start_others(self):
    if self.name != "dynamodb-ttl-reaper":
        start_thread(self)


threading.Thread.start = start_others

# How often an invocation's server checks whether it must stop, in seconds. The invocation gets its response only
# after such a check. By default that takes up to half a second.
socketserver.BaseServer.serve_forever.__defaults__ = (0.01,)

IP_FREEBIND = 15


def also_bind(address, port):
    other = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if platform.system() == "Linux":
        other.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
    other.bind((address, port))
    bind = hypercorn.config.Config.bind

    def set_bind(self, binds):
        bind.fset(self, [*binds, f"fd://{other.fileno()}"])

    hypercorn.config.Config.bind = bind.setter(set_bind)
    return other


if "ALSO_BIND" in os.environ:
    # Keep a reference, so that the socket stays open.
    also_bound = also_bind(os.environ["ALSO_BIND"], int(os.environ["GATEWAY_PORT"]))



def delete_stacks_by_id():
    from ministack.services import cloudformation
    from ministack.services.cloudformation import handlers

    delete = handlers._ACTION_HANDLERS["DeleteStack"]

    def delete_stack(params):
        wanted = handlers._p(params, "StackName")
        names = [name for name, stack in cloudformation._stacks.items() if stack.get("StackId") == wanted]
        return delete({**params, "StackName": names[:1]} if names else params)

    handlers._ACTION_HANDLERS["DeleteStack"] = delete_stack


delete_stacks_by_id()

runpy.run_module("ministack", run_name="__main__")
