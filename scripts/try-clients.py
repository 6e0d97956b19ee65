"""Runs other people's programs against bin/cutroom, and prints a table of them (docs/clients.md, docs/agents.md).

python3 scripts/try-clients.py libraries [NAME…]    calls the demonstration model
python3 scripts/try-clients.py agents [NAME…]       asks each agent to write a file, with scripted-model.py as the model

It installs the pinned versions from PyPI and npm in ~/.cache/cutroom-clients. Nothing else runs this script.
"""

import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = pathlib.Path.home() / ".cache" / "cutroom-clients"
KEY, SECONDS = "ck_try-clients-0001", 120

PYTHON = """
import os; M, KEY, URL = "cutroom-echo", os.environ["OPENAI_API_KEY"], os.environ["OPENAI_BASE_URL"]
HI = [{"role": "user", "content": "Hello!"}]
def weather(city: str) -> str:
    "The weather in a city."
    return "sunny"
"""
NODE = """
const M = "cutroom-echo", HI = [{role: "user", content: "Hello!"}], env = process.env;
const check = value => { if (!value) throw new Error("the answer is empty"); };
"""
# name: (packages, program). A package with @ after its name is npm's.
LIBRARIES = {
    "openai": ("openai==3.57.0", """
from openai import OpenAI; c = OpenAI()
assert "".join(e.choices[0].delta.content or "" for e in c.chat.completions.create(model=M, messages=HI, stream=True))
kept = c.responses.create(model=M, input="Hello!"); assert kept.output_text
assert c.responses.create(model=M, input="And now?", previous_response_id=kept.id).output_text
assert c.embeddings.create(model=M, input="Hello!").data[0].embedding"""),
    "openai (Node.js)": ("openai@7.59.0", """
import OpenAI from "openai"; const c = new OpenAI();
for await (const e of await c.chat.completions.create({model: M, messages: HI, stream: true})) check(e.id);
check((await c.responses.create({model: M, input: "Hello!"})).output_text);"""),
    "anthropic": ("anthropic==2.14.0", """
from anthropic import Anthropic
with Anthropic().messages.stream(model=M, max_tokens=99, messages=HI) as s: assert s.get_final_text()
assert Anthropic().messages.count_tokens(model=M, messages=HI).input_tokens"""),
    "anthropic (Node.js)": ("@anthropic-ai/sdk@1.14.0", """
import Anthropic from "@anthropic-ai/sdk";
check(await new Anthropic().messages.stream({model: M, max_tokens: 99, messages: HI}).finalText());"""),
    "AI SDK": ("ai@7.0.173 @ai-sdk/openai@4.0.118 @ai-sdk/anthropic@4.0.105 @ai-sdk/openai-compatible@3.0.92 zod@4.6.7", """
import {streamText, generateText, stepCountIs, tool} from "ai"; import {createOpenAI} from "@ai-sdk/openai"; import {z} from "zod";
import {createAnthropic} from "@ai-sdk/anthropic"; import {createOpenAICompatible} from "@ai-sdk/openai-compatible";
const o = {baseURL: env.OPENAI_BASE_URL, apiKey: env.OPENAI_API_KEY, name: "cutroom"};
const tools = {weather: tool({inputSchema: z.object({city: z.string()}), execute: () => "sunny"})};
for (const model of [createOpenAI(o)(M), createAnthropic(o)(M), createOpenAICompatible(o)(M)]) {
  check(await streamText({model, prompt: "Hello!"}).text);
  check((await generateText({model, tools, prompt: "Hello!", stopWhen: stepCountIs(2)})).steps[1].text.includes("sunny"));
}"""),
    "LangChain for OpenAI": ("langchain-openai==1.7.4", """
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
for responses in False, True:
    c = ChatOpenAI(model=M, use_responses_api=responses)
    assert "".join(e.text for e in c.stream("Hello!")) and c.bind_tools([weather]).invoke("Hello!").tool_calls
assert OpenAIEmbeddings(model=M, check_embedding_ctx_length=False).embed_query("Hello!")"""),
    "LangChain for OpenAI (Node.js)": ("@langchain/openai@1.6.0 @langchain/core@1.4.0", """
import {ChatOpenAI} from "@langchain/openai";
const c = new ChatOpenAI({model: M, configuration: {baseURL: env.OPENAI_BASE_URL}});
for await (const e of await c.stream("Hello!")) check(e);"""),
    "LangChain for Anthropic": ("langchain-anthropic==1.7.10", """
from langchain_anthropic import ChatAnthropic; c = ChatAnthropic(model=M)
assert "".join(e.text for e in c.stream("Hello!")) and c.bind_tools([weather]).invoke("Hello!").tool_calls"""),
    "LlamaIndex": ("llama-index-llms-openai-like==0.8.1", """
from llama_index.llms.openai_like import OpenAILike
c = OpenAILike(model=M, api_base=URL, api_key=KEY, is_chat_model=True)
assert "".join(e.delta for e in c.stream_complete("Hello!"))"""),
    "pydantic-ai": ("pydantic-ai-slim[openai,anthropic]==2.68.0", """
from pydantic_ai import Agent
for kind in "openai-chat:", "openai-responses:", "anthropic:":
    assert "sunny" in Agent(kind + M, tools=[weather]).run_sync("Hello!").output, kind"""),
    "OpenAI Agents": ("openai-agents==0.24.0", """
from agents import Agent, Runner, function_tool, set_tracing_disabled; set_tracing_disabled(True)
assert "sunny" in Runner.run_sync(Agent(name="a", model=M, tools=[function_tool(weather)]), "Hello!").final_output"""),
    "instructor": ("instructor==1.17.0", """
import instructor, openai, pydantic
class Plan(pydantic.BaseModel): steps: list[str]
assert instructor.from_openai(openai.OpenAI()).chat.completions.create(model=M, messages=HI, response_model=Plan)"""),
    "litellm": ("litellm==1.110.2", """
import litellm
for kind in "openai/", "anthropic/":
    assert "".join(e.choices[0].delta.content or "" for e in litellm.completion(kind + M, HI, max_tokens=99, stream=True)), kind
assert litellm.embedding("openai/" + M, ["Hello!"]).data"""),
}


def codex(options):
    return lambda model, url: (
        f"{options} codex exec --skip-git-repo-check -s danger-full-access TASK", {".codex/config.toml":
        f'model = "{model}"\nweb_search = "disabled"\n' + (f'openai_base_url = "{url}/v1"\n' if options else
        f'model_provider = "cutroom"\n[model_providers.cutroom]\nname = "Cutroom"\nbase_url = "{url}/v1"\n'
        'env_key = "OPENAI_API_KEY"\nwire_api = "responses"\n')})


def opencode(package):
    return lambda model, url: (f"opencode run -m cutroom/{model} TASK", {"opencode.json": json.dumps({"provider": {"cutroom": {
        "npm": package, "options": {"baseURL": url + "/v1", "apiKey": KEY},
        "models": {model: {"limit": {"context": 131072, "output": 32768}}}}}})})


def pi(api, path):
    return lambda model, url: (f"pi --provider cutroom --model {model} -p TASK", {".pi/agent/models.json": json.dumps({
        "providers": {"cutroom": {"baseUrl": url + path, "api": api, "apiKey": "OPENAI_API_KEY", "models": [{"id": model}]}}})})


def proceed(provider):
    return lambda model, url: ("cn -p --config config.yaml --allow Write TASK", {"config.yaml": json.dumps({
        "name": "Cutroom", "version": "1.0.0", "schema": "v1", "models": [{"name": "Cutroom", "provider": provider, "model": model,
        "apiBase": url + "/v1", "apiKey": KEY, "capabilities": ["tool_use"]}]})})


# name: (packages, {dialect: setup}). A setup returns a shell command and the files that it needs.
AGENTS = {
    "Claude Code": ("@anthropic-ai/claude-code@2.1.332", {"messages": lambda model, url: (
        f"ANTHROPIC_MODEL={model} ANTHROPIC_SMALL_FAST_MODEL={model} claude -p TASK --permission-mode acceptEdits", {})}),
    "Codex": ("@openai/codex@0.171.0", {
        "responses": codex(""), "responses (built-in provider)": codex("echo $OPENAI_API_KEY | codex login --with-api-key;")}),
    "opencode": ("opencode-ai@1.18.33", {"chat": opencode("@ai-sdk/openai-compatible"),
        "responses": opencode("@ai-sdk/openai"), "messages": opencode("@ai-sdk/anthropic")}),
    "qwen-code": ("@qwen-code/qwen-code@0.24.4", {
        "chat": lambda model, url: (f"qwen --auth-type openai -m {model} -y -p TASK", {}),
        "messages": lambda model, url: (f"qwen --auth-type anthropic -m {model} -y -p TASK", {})}),
    "pi": ("@mariozechner/pi-coding-agent@0.73.1", {"chat": pi("openai-completions", "/v1"),
        "responses": pi("openai-responses", "/v1"), "messages": pi("anthropic-messages", "")}),
    "Cline CLI": ("cline@3.0.65", {"chat": lambda model, url: (
        f"cline auth -p openai -k {KEY} -m {model} -b {url}/v1 && cline -y TASK", {})}),
    "Continue CLI": ("@continuedev/cli@1.5.47", {"chat": proceed("openai"), "messages": proceed("anthropic")}),
    "aider": ("aider-chat==0.86.2", {
        "chat": lambda model, url: (f"aider --model openai/{model} --no-git --yes-always --message TASK", {}),
        "messages": lambda model, url: (f"aider --model anthropic/{model} --no-git --yes-always --message TASK", {})}),
}


def install(name, packages):
    """Returns the folder of the client's programs."""
    folder = TOOLS / re.sub(r"\W+", "-", name)
    programs, stamp = folder / ("bin" if "==" in packages else "node_modules/.bin"), folder / "installed"
    if not stamp.exists() or stamp.read_text() != packages:
        folder.mkdir(parents=True, exist_ok=True)
        if "==" in packages:
            # aider supports no newer Python than 3.12.
            subprocess.run([os.environ.get("PYTHON", sys.executable), "-m", "venv", folder], check=True)
            subprocess.run([programs / "pip", "install", "-q", *packages.split()], check=True)
        else:
            (folder / "package.json").write_text('{"private": true, "type": "module"}')
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", *packages.split()], cwd=folder, check=True)
        stamp.write_text(packages)
    return programs


def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A Cutroom server whose rows "chat" and "native" have the scripted model."""

    def __init__(self, folder):
        self.folder, media, inference, model = folder, port(), port(), port()
        self.url, self.log = f"http://127.0.0.1:{inference}", folder / "server.log"
        rows = "".join(f"\n  - {{id: {row}, routes: [{routes}], context_length: 131072, max_output_length: 32768, upstreams: "
                       f"[{{url: 'http://127.0.0.1:{model}/v1'}}]}}\n" for row, routes in
                       {"scripted-chat": "chat", "scripted-native": "chat, responses, messages, count_tokens"}.items())
        (folder / "catalog.yaml").write_text((ROOT / "shared/domain/catalog/catalog.yaml").read_text() + rows)
        environment = {"PATH": os.environ["PATH"], "CUTROOM_CATALOG": str(folder / "catalog.yaml"), "CUTROOM_DATA": str(folder / "data"),
                       "CUTROOM_ADDR": f"127.0.0.1:{media}", "CUTROOM_INFERENCE_ADDR": f"127.0.0.1:{inference}", "CUTROOM_DEV_KEY": KEY}
        with self.log.open("w") as log:
            self.programs = [subprocess.Popen([sys.executable, ROOT / "scripts/scripted-model.py", str(model)]),
                             subprocess.Popen([ROOT / "bin/cutroom", "dev"], env=environment, stdout=log, stderr=log)]
        while "is ready" not in self.log.read_text():
            time.sleep(0.2)

    def run(self, programs, home, command):
        """Runs a shell command. Returns its exit status, its output, and the calls that reached the server."""
        before = self.log.stat().st_size
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8", "CI": "1", "TERM": "dumb",
                       "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": self.url + "/v1", "OPENAI_API_BASE": self.url + "/v1",
                       "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_BASE": self.url}
        done = subprocess.run(["timeout", "-k", "5", str(SECONDS), "bash", "-c", command], cwd=home, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        calls = re.findall(r" route=/v1/(\S+) status=(\d+)", self.log.read_text()[before:])
        return done.returncode, done.stdout.decode(errors="replace"), calls

    def stop(self):
        for program in self.programs:
            program.terminate()
            program.wait()


def called(calls):
    return ", ".join(dict.fromkeys(route.removesuffix("/completions") if status == "200" else f"{route} ({status})" for route, status in calls))


def main():
    what, names, failed = sys.argv[1], sys.argv[2:], False
    columns = ["library", "calls"] if what == "libraries" else ["agent", "dialect", "translated to chat", "forwarded"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    with tempfile.TemporaryDirectory() as temporary:
        server = Server(pathlib.Path(temporary))
        try:
            for name, (packages, content) in (LIBRARIES if what == "libraries" else AGENTS).items():
                if names and name not in names:
                    continue
                programs = install(name, packages)
                version = re.split("==|.@", packages.split()[0])[-1]
                for label, setup in ({"": None} if what == "libraries" else content).items():
                    results = []
                    for model in [""] if what == "libraries" else ["scripted-chat", "scripted-native"]:
                        home = pathlib.Path(tempfile.mkdtemp(dir=temporary))
                        target = home / f"hello-{len(os.listdir(temporary))}.txt"
                        if what == "libraries":
                            run = "python" if "==" in packages else f"cd {programs.parent.parent} && node --input-type=module"
                            status, out, calls = server.run(programs, home, f"{run} -{'c' if '==' in packages else 'e'} " + shlex.quote(
                                (PYTHON if "==" in packages else NODE) + content))
                        else:
                            command, files = setup(model, server.url)
                            for path, text in files.items():
                                (home / path).parent.mkdir(parents=True, exist_ok=True)
                                (home / path).write_text(text)
                            task = shlex.quote(f"Write the file {target} with a greeting in it.")
                            status, out, calls = server.run(programs, home, command.replace("TASK", task))
                            status = status or not (target.exists() and "hello" in target.read_text())
                        results.append(("FAILED: " if status else "") + called(calls))
                        if status:
                            failed = True
                            print(out[-3000:], file=sys.stderr)
                    print("| " + " | ".join([f"{name} {version}", *([label] if label else []), *results]) + " |", flush=True)
        finally:
            server.stop()
    sys.exit(failed)


main()
