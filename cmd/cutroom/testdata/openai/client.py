"""Calls the inference gateway with the official client library for Python.

Each check prints its name when it has passed; the first failure ends the
program. URLs and keys come from the environment.
"""

import json
import os
from typing import Literal

import openai
import pydantic

URL = os.environ["GATEWAY_URL"]
MODEL = "cutroom-echo"
HELLO = [{"role": "user", "content": "Grüße 🤚🏾, you!"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}


def client(key="PERMANENT_KEY", **options):
    options.setdefault("max_retries", 0)
    return openai.OpenAI(base_url=URL + "/v1", api_key=os.environ[key], **options)


def rejected(kind, call):
    """Returns the exception that the call raises, and checks its class."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def models():
    listed = {m.id: m for m in client().models.list()}
    assert listed[MODEL].max_output_length == 4096, listed
    assert "cutroom-chat" not in listed, "a placeholder is listed"
    assert client().models.retrieve(MODEL).capabilities[:2] == ["chat", "completions"]
    rejected(openai.NotFoundError, lambda: client().models.retrieve("cutroom-chat"))


def chat():
    raw = client().chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    answer = raw.parse()
    choice = answer.choices[0]
    assert "not a language model" in choice.message.content and "Grüße 🤚🏾, you!" in choice.message.content
    assert choice.finish_reason == "stop" and choice.message.role == "assistant" and answer.model == MODEL
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 10
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert raw.headers["x-tokens-used"] == str(answer.usage.total_tokens)
    assert answer._request_id == raw.headers["x-request-id"] != ""


def limits():
    cut = client().chat.completions.create(model=MODEL, messages=HELLO, max_completion_tokens=3)
    assert cut.choices[0].finish_reason == "length" and cut.usage.completion_tokens == 3
    stopped = client().chat.completions.create(model=MODEL, messages=HELLO, stop=["language"])
    assert stopped.choices[0].message.content.endswith("It is not a ")
    two = client().chat.completions.create(model=MODEL, messages=HELLO, n=2)
    assert len(two.choices) == 2


def streaming():
    whole = client().chat.completions.create(model=MODEL, messages=HELLO)
    text, usage, count = "", None, 0
    for chunk in client().chat.completions.create(model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}):
        count += 1
        assert chunk.model == MODEL and chunk.object == "chat.completion.chunk"
        for choice in chunk.choices:
            text += choice.delta.content or ""
        usage = chunk.usage or usage
    assert text == whole.choices[0].message.content and usage == whole.usage and count > 10
    for chunk in client().chat.completions.create(model=MODEL, messages=HELLO, stream=True):
        assert chunk.usage is None and chunk.choices
    with client().chat.completions.stream(model=MODEL, messages=HELLO) as stream:
        assert stream.get_final_completion().choices[0].message.content == text


def leaving_a_stream():
    stream = client().chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    next(iter(stream))
    stream.close()


def tools():
    answer = client().chat.completions.create(model=MODEL, messages=HELLO, tools=[TOOL])
    call = answer.choices[0].message.tool_calls[0]
    assert answer.choices[0].finish_reason == "tool_calls" and call.function.name == "get_weather"
    arguments = json.loads(call.function.arguments)
    assert arguments["days"] == 1 and isinstance(arguments["city"], str)
    followed = client().chat.completions.create(model=MODEL, tools=[TOOL], messages=HELLO + [
        answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ])
    assert "sunny" in followed.choices[0].message.content
    forced = {"type": "function", "function": {"name": "get_weather"}}
    with client().chat.completions.stream(model=MODEL, messages=HELLO, tools=[TOOL], tool_choice=forced) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0].function
    assert json.loads(streamed.arguments) == arguments and streamed.parsed_arguments == arguments
    none = client().chat.completions.create(model=MODEL, messages=HELLO, tools=[TOOL], tool_choice="none")
    assert not none.choices[0].message.tool_calls and none.choices[0].message.content


def json_mode():
    answer = client().chat.completions.create(model=MODEL, messages=HELLO, response_format={"type": "json_object"})
    assert isinstance(json.loads(answer.choices[0].message.content), dict)


class Plan(pydantic.BaseModel):
    steps: list[Literal["cut", "fade"]]
    minutes: float
    note: str


def structured_output():
    answer = client().chat.completions.parse(model=MODEL, messages=HELLO, response_format=Plan)
    plan = answer.choices[0].message.parsed
    assert isinstance(plan, Plan) and plan.steps == ["cut"], plan
    rejected(openai.LengthFinishReasonError, lambda: client().chat.completions.parse(
        model=MODEL, messages=HELLO, response_format=Plan, max_tokens=2))


def completions():
    ids = {"return_token_ids": True}
    first = client().completions.create(model=MODEL, prompt="Once upon 🤚🏾", max_tokens=12, extra_body=ids)
    choice = first.choices[0]
    assert first.object == "text_completion" and choice.finish_reason == "length" and len(choice.token_ids) == 12
    back = client().completions.create(model=MODEL, prompt=choice.token_ids, echo=True, max_tokens=1)
    assert back.choices[0].text.startswith(choice.text) and back.usage.prompt_tokens == 12
    several = client().completions.create(model=MODEL, prompt=[[15339, 1917], [11]], echo=True)
    assert several.choices[0].text.startswith("hello world ") and several.choices[1].text.startswith(", ")
    text = "".join(chunk.choices[0].text for chunk in client().completions.create(model=MODEL, prompt=["a"], stream=True))
    assert text == client().completions.create(model=MODEL, prompt="a").choices[0].text


def errors():
    def ask(model=MODEL, key="PERMANENT_KEY", **fields):
        return lambda: client(key).chat.completions.create(model=model, messages=HELLO, **fields)

    error = rejected(openai.AuthenticationError, ask(key="WRONG_KEY"))
    assert error.status_code == 401 and error.code == "invalid_api_key" and error.type == "authentication_error"
    for name in "nowhere", "cutroom-chat":
        error = rejected(openai.NotFoundError, ask(model=name))
        assert error.code == "model_not_found" and error.request_id
    error = rejected(openai.BadRequestError, ask(temperature=3))
    assert error.param == "temperature" and error.type == "invalid_request_error"
    rejected(openai.BadRequestError, ask(stop=["a", "b", "c", "d", "e"]))
    rejected(openai.PermissionDeniedError, ask(key="OTHER_MODELS_TOKEN"))
    ask(key="MODELS_TOKEN")()
    ask(key="TIGHT_KEY")()
    error = rejected(openai.RateLimitError, ask(key="TIGHT_KEY"))
    assert error.code == "rate_limit_exceeded" and int(error.response.headers["retry-after"]) > 0
    assert error.response.headers["x-ratelimit-limit-requests"] == "1"
    assert error.response.headers["x-ratelimit-remaining-requests"] == "0"
    error = rejected(openai.InternalServerError, ask(model="unreachable"))
    assert error.status_code == 502 and error.code == "upstream_error"


def broken_stream():
    def read():
        for _ in client().chat.completions.create(model="breaking", messages=HELLO, stream=True):
            pass

    error = rejected(openai.APIError, read)
    assert error.code == "upstream_error", error


def timeouts():
    rejected(openai.APITimeoutError, lambda: client(timeout=0.3).chat.completions.create(model="silent", messages=HELLO))


def retries():
    answer = client(max_retries=2).chat.completions.create(model="flaky", messages=HELLO)
    assert answer.choices[0].message.content == "at last" and answer.model == "flaky"


def audio():
    said = {"model": "voice", "voice": "alloy", "input": "hello", "response_format": "mp3"}
    mp3 = b"ID3" + b"x" * 100_000
    assert client().audio.speech.create(**said).content == mp3
    with client().audio.speech.with_streaming_response.create(**said) as answer:
        assert b"".join(answer.iter_bytes()) == mp3 and answer.headers["content-type"] == "audio/mpeg"
    asked = {"model": "ear", "file": ("a.wav", b"RIFF", "audio/wav"), "language": "en"}
    heard = client().audio.transcriptions.create(**asked)
    assert heard.text == "audio.wav 4 en" and heard.usage.seconds == 3, heard
    assert client().audio.transcriptions.create(response_format="text", **asked) == "audio.wav 4 en"
    events = list(client().audio.transcriptions.create(stream=True, **asked))
    assert [e.type for e in events] == ["transcript.text.delta", "transcript.text.done"] and events[1].text == "audio.wav 4 en"
    error = rejected(openai.NotFoundError, lambda: client().audio.speech.create(**{**said, "model": MODEL}))
    assert error.code == "model_not_found"


for check in (models, chat, limits, streaming, leaving_a_stream, tools, json_mode, structured_output, completions,
              errors, broken_stream, timeouts, retries, audio):
    check()
    print(check.__name__, flush=True)
