"""Calls a language model with the official client libraries, under three names: "local" is the model as make run-llm
serves it; "translated" is the same server, configured as if it knew only chat; the server of "native" gets Responses
requests.

Each check prints its name when it has passed; the first failure ends the program. URLs and the key come from the
environment.
"""

import json
import os

import anthropic
import openai

URL = os.environ["GATEWAY_URL"]
KEY = os.environ["PERMANENT_KEY"]
# The schema allows only one value, because the model's output has no meaning.
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Rom"]}}, "required": ["city"]}
HELLO = [{"role": "user", "content": "Grüße!"}]
# Anthropic's client has no argument for the temperature anymore.
GREEDY = {"extra_body": {"temperature": 0}}
SAME = {"max_tokens": 40} | GREEDY
oai = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0)
claude = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)


def responses(model):
    whole = oai.responses.create(model=model, input="Grüße!", temperature=0, max_output_tokens=40)
    assert len(whole.output_text) > 5 and whole.model == model and whole.usage.output_tokens == 40, whole
    with oai.responses.stream(model=model, input="Grüße!", temperature=0, max_output_tokens=40) as stream:
        events = list(stream)
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    final = events[-1].response
    assert text == final.output_text == whole.output_text, (text, final, whole)
    assert final.usage.input_tokens == whole.usage.input_tokens, (final, whole)


def responses_tools(model):
    """Runs an agent's turns with Responses."""
    tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}]
    asked = {"model": model, "tools": tools, "temperature": 0, "max_output_tokens": 300, "parallel_tool_calls": False}
    items = [{"role": "user", "content": "Say how it is."}]
    with oai.responses.stream(input=items, tool_choice="required", **asked) as stream:
        answer = stream.get_final_response()
    (call,) = [item for item in answer.output if item.type == "function_call"]
    assert call.name == "get_weather" and json.loads(call.arguments) == {"city": "Rom"}, answer
    items += [{"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}]
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    answer = oai.responses.create(input=items, **(asked | {"max_output_tokens": 5}))
    assert answer.usage.output_tokens > 0, answer


def responses_in_place(_):
    """Reads llama.cpp's events directly, because the client's stream helper cannot parse them."""
    asked = {"model": "native", "input": "Grüße!", "temperature": 0, "max_output_tokens": 40}
    whole = oai.responses.create(**asked)
    events = list(oai.responses.create(stream=True, **asked))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == whole.output_text and len(text) > 5, (text, whole)
    assert events[-1].type == "response.completed" and events[-1].response.model == "native", events[-1]
    assert events[-1].response.usage.output_tokens == whole.usage.output_tokens == 40, (events[-1], whole)


def messages(model):
    whole = claude.messages.create(model=model, messages=HELLO, **SAME)
    assert len(whole.content[0].text) > 5 and whole.model == model and whole.stop_reason == "max_tokens", whole
    with claude.messages.stream(model=model, messages=HELLO, **SAME) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == final.content[0].text == whole.content[0].text, (text, final, whole)
    assert final.usage.output_tokens == whole.usage.output_tokens == 40, (final, whole)
    stopped = claude.messages.create(model=model, messages=HELLO, stop_sequences=[text[2]], **SAME)
    assert text[2] not in stopped.content[0].text and stopped.usage.output_tokens < 40, stopped


def messages_tools(model):
    """Runs an agent's turns with Messages and parallel tool calls."""
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    asked = {"model": model, "tools": tools, "max_tokens": 220} | GREEDY
    turns = [{"role": "user", "content": "Say how it is."}]
    one = {"type": "any", "disable_parallel_tool_use": True}
    with claude.messages.stream(messages=turns, tool_choice=one, **asked) as stream:
        answer = stream.get_final_message()
    call, *others = [block for block in answer.content if block.type == "tool_use"]
    assert call.input == {"city": "Rom"}, answer
    # llama.cpp's own Messages route ignores disable_parallel_tool_use.
    assert model == "local" or not others and answer.stop_reason == "tool_use", answer
    several = claude.messages.create(messages=turns, tool_choice={"type": "any"}, **asked)
    calls = [block for block in several.content if block.type == "tool_use"]
    assert len(calls) > 1 and all(c.name == "get_weather" for c in calls), several
    assert len({c.id for c in calls}) == len(calls), several
    turns.append({"role": "assistant", "content": [call]})
    turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]})
    answer = claude.messages.create(messages=turns, **(asked | {"max_tokens": 5}))
    assert answer.usage.output_tokens > 0, answer


def chat(model):
    """Streams a chat whose reply must match a schema, and a chat that calls a function."""
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
    answer = oai.chat.completions.create(model=model, messages=HELLO, response_format=form, temperature=0, max_tokens=300)
    assert json.loads(answer.choices[0].message.content) == {"city": "Rom"}, answer
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA, "strict": True}}]
    with oai.chat.completions.stream(model=model, messages=HELLO, tools=tools, tool_choice="required", temperature=0,
                                     parallel_tool_calls=False, max_tokens=300) as stream:
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Rom"}, final


def count(model):
    counted = claude.messages.count_tokens(model=model, messages=HELLO).input_tokens
    answer = claude.messages.create(model=model, messages=HELLO, max_tokens=1, **GREEDY)
    used = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
    # llama.cpp's own token count is exact; the gateway's count is an estimate.
    assert counted == used if model == "local" else counted > 0, (counted, answer)


def too_long(model):
    long = "word " * 8000
    for kind, call in [
        (openai.BadRequestError, lambda: oai.responses.create(model=model, input=long, max_output_tokens=5)),
        (anthropic.BadRequestError, lambda: claude.messages.create(
            model=model, max_tokens=5, messages=[{"role": "user", "content": long}])),
    ]:
        try:
            call()
        except kind as error:
            assert "context" in str(error), error
        else:
            raise AssertionError("no error was raised")


for check in (chat, responses, responses_tools, responses_in_place, messages, messages_tools, count, too_long):
    for name in ("local", "translated"):
        check(name)
    print(check.__name__, flush=True)
