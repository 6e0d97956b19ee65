"""Calls the gateway's other dialects (Responses and Messages) with the official client libraries for Python.

Each check prints its name when it has passed; the first failure ends the program. URLs and keys come from the
environment.
"""

import base64
import json
import os

import anthropic
import openai
import pydantic

URL = os.environ["GATEWAY_URL"]
MODEL = "cutroom-echo"
PIXEL = base64.b64encode(b"a picture").decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = [{"role": "user", "content": "Grüße 🤚🏾, you!"}]


class Weather(pydantic.BaseModel):
    city: str
    days: int


def oai(key="PERMANENT_KEY", **options):
    options.setdefault("max_retries", 0)
    return openai.OpenAI(base_url=URL + "/v1", api_key=os.environ[key], **options)


def claude(key="PERMANENT_KEY", **options):
    options.setdefault("max_retries", 0)
    return anthropic.Anthropic(base_url=URL, api_key=os.environ[key], **options)


def rejected(kind, call):
    """Returns the exception that the call raises, and checks its class."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def responses():
    answer = oai().responses.create(model=MODEL, input="Grüße 🤚🏾, you!", instructions="Be kind.")
    assert "Grüße 🤚🏾, you!" in answer.output_text, answer
    assert answer.status == "completed" and answer.model == MODEL and answer.usage.total_tokens > 0, answer
    cut = oai().responses.create(model=MODEL, input="hello", max_output_tokens=2)
    assert cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens", cut


def responses_stream():
    with oai().responses.stream(model=MODEL, input="Grüße 🤚🏾, you!") as stream:
        events = list(stream)
        final = stream.get_final_response()
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == final.output_text and "Grüße 🤚🏾, you!" in text, (text, final)
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert [e.sequence_number for e in events] == sorted(e.sequence_number for e in events)
    for event in oai().responses.create(model=MODEL, input="hello", stream=True):
        if event.type == "response.output_text.delta":
            break  # the client leaves before the stream ends


def responses_parse():
    answer = oai().responses.parse(model=MODEL, input="hello", text_format=Weather)
    assert isinstance(answer.output_parsed, Weather), answer
    with oai().responses.stream(model=MODEL, input="hello", text_format=Weather) as stream:
        assert isinstance(stream.get_final_response().output_parsed, Weather)


def responses_agent():
    """Runs an agent's turns, with a picture and two parallel tool calls."""
    tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}]
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL, "detail": "auto"}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "look"}, picture]}]
    with oai().responses.stream(model="agent", instructions="Be kind.", input=items, tools=tools) as stream:
        answer = stream.get_final_response()
    kinds = ["reasoning", "message", "function_call", "function_call"]
    assert [item.type for item in answer.output] == kinds, answer
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [json.loads(c.arguments) for c in calls] == [{"city": "Köln"}, {"city": "Rom"}], calls
    items += answer.output
    items += [{"type": "function_call_output", "call_id": c.call_id, "output": "sunny"} for c in calls]
    answer = oai().responses.create(model="agent", instructions="Be kind.", input=items, tools=tools)
    assert answer.output_text == "sunny in both" and answer.usage.input_tokens == 30, answer


def responses_errors():
    error = rejected(openai.NotFoundError, lambda: oai().responses.create(model="none", input="x"))
    assert error.code == "model_not_found", error
    error = rejected(openai.BadRequestError,
                    lambda: oai().responses.create(model=MODEL, input="x", tools=[{"type": "web_search"}]))
    assert error.param == "tools[0]" and error.code == "unknown_parameter", error
    kept = oai().responses.create(model=MODEL, input="x", store=True)
    assert oai().responses.retrieve(kept.id).output_text == kept.output_text
    rejected(openai.AuthenticationError, lambda: oai("WRONG_KEY").responses.create(model=MODEL, input="x"))
    rejected(openai.PermissionDeniedError, lambda: oai("OTHER_MODELS_TOKEN").responses.create(model=MODEL, input="x"))
    assert oai("MODELS_TOKEN").responses.create(model=MODEL, input="x").output_text
    answer = oai(max_retries=2).responses.create(model="flaky", input="x")
    assert answer.output_text == "at last", answer


def responses_broken():
    events = list(oai().responses.create(model="breaking", input="x", stream=True))
    assert events[-1].type == "response.failed" and events[-1].response.error.code == "upstream_error", events[-1]


def messages():
    answer = claude().messages.create(model=MODEL, max_tokens=500, system="Be kind.", messages=HELLO)
    assert "Grüße 🤚🏾, you!" in answer.content[0].text, answer
    assert answer.stop_reason == "end_turn" and answer.model == MODEL and answer.usage.output_tokens > 0, answer
    cut = claude().messages.create(model=MODEL, max_tokens=2, messages=HELLO)
    assert cut.stop_reason == "max_tokens" and cut.usage.output_tokens == 2, cut
    bearer = anthropic.Anthropic(base_url=URL, auth_token=os.environ["PERMANENT_KEY"], api_key=None)
    assert bearer.messages.create(model=MODEL, max_tokens=5, messages=HELLO).content


def messages_stream():
    with claude().messages.stream(model=MODEL, max_tokens=500, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == final.content[0].text and "Grüße 🤚🏾, you!" in text, (text, final)
    assert final.stop_reason == "end_turn" and final.usage.input_tokens > 0 and final.usage.output_tokens > 0, final
    with claude().messages.stream(model=MODEL, max_tokens=500, messages=HELLO) as stream:
        next(iter(stream.text_stream))  # the client leaves before the stream ends


def messages_parse():
    answer = claude().messages.parse(model=MODEL, max_tokens=500, messages=HELLO, output_format=Weather)
    assert isinstance(answer.parsed_output, Weather), answer


def messages_agent():
    """Runs an agent's turns, with a picture and two parallel tool calls."""
    tools = [{"name": "get_weather", "input_schema": SCHEMA, "strict": True}]
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    turns = [{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}]}]
    asked = {"model": "agent", "max_tokens": 40, "system": "Be kind.", "messages": turns, "tools": tools}
    with claude().messages.stream(**asked) as stream:
        answer = stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"], answer
    calls = answer.content[2:]
    assert [c.input for c in calls] == [{"city": "Köln"}, {"city": "Rom"}] and answer.stop_reason == "tool_use", answer
    turns.append({"role": "assistant", "content": answer.content})
    turns.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": c.id, "content": "sunny"} for c in calls
    ]})
    answer = claude().messages.create(**asked)
    assert answer.content[0].text == "sunny in both" and answer.usage.input_tokens == 30, answer


def messages_errors():
    def ask(key="PERMANENT_KEY", **fields):
        return lambda: claude(key).messages.create(**({"model": MODEL, "max_tokens": 5, "messages": HELLO} | fields))

    error = rejected(anthropic.NotFoundError, ask(model="none"))
    assert error.body["error"]["type"] == "not_found_error" and error.body["request_id"], error.body
    rejected(anthropic.BadRequestError, ask(tools=[{"type": "web_search_20250305", "name": "web_search"}]))
    rejected(anthropic.AuthenticationError, ask("WRONG_KEY"))
    rejected(anthropic.PermissionDeniedError, ask("OTHER_MODELS_TOKEN"))
    assert ask("MODELS_TOKEN")().content
    error = rejected(anthropic.InternalServerError, ask(model="unreachable"))
    assert error.status_code == 502, error
    answer = claude(max_retries=2).messages.create(model="flaky", max_tokens=5, messages=HELLO)
    assert answer.content[0].text == "at last", answer


def messages_broken():
    def read():
        with claude().messages.stream(model="breaking", max_tokens=5, messages=HELLO) as stream:
            stream.get_final_message()

    rejected(anthropic.APIStatusError, read)


def count():
    assert claude().messages.count_tokens(model=MODEL, messages=HELLO, system="Be kind.").input_tokens > 5


def embeddings():
    answer = oai().embeddings.create(model=MODEL, input=["a red fox", "tax"], dimensions=16)
    assert [len(d.embedding) for d in answer.data] == [16, 16] and answer.usage.total_tokens > 0, answer


for check in (responses, responses_stream, responses_parse, responses_agent, responses_errors, responses_broken,
              messages, messages_stream, messages_parse, messages_agent, messages_errors, messages_broken, count, embeddings):
    check()
    print(check.__name__, flush=True)
