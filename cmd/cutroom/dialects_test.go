package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	dialectChecksPython = "responses responses_stream responses_parse responses_agent responses_errors responses_broken " +
		"messages messages_stream messages_parse messages_agent messages_errors messages_broken count embeddings"
	dialectChecksNode = "responses responses_stream responses_parse responses_agent responses_errors responses_broken " +
		"messages messages_stream messages_agent messages_errors messages_broken count embeddings"
)

// An agent's turns as the model server must receive them, no matter which dialect the client uses.
const (
	agentFirst = `[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"look"},` +
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,YSBwaWN0dXJl"`
	agentSecond = `{"role":"assistant","reasoning_content":"two cities","reasoning":"two cities","content":"I look.","tool_calls":[` +
		`{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Köln\"}"}},` +
		`{"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rom\"}"}}]},` +
		`{"role":"tool","tool_call_id":"call_a","content":"sunny"},{"role":"tool","tool_call_id":"call_b","content":"sunny"}],`
)

// agentAnswers is a model server for an agent. It streams two function calls and then responds with
// text. It rejects an unexpected request, so the client fails.
func agentAnswers(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	asked := strings.ReplaceAll(string(body), `,"detail":"auto"`, "")
	asked = strings.ReplaceAll(asked, `{\"city\": \"K\u00f6ln\"}`, `{\"city\":\"Köln\"}`)
	asked = strings.ReplaceAll(asked, `{\"city\": \"Rom\"}`, `{\"city\":\"Rom\"}`)
	asked = strings.ReplaceAll(asked, `{\"city\": \"Köln\"}`, `{\"city\":\"Köln\"}`)
	if err != nil || !strings.HasPrefix(asked, `{"messages":`+agentFirst) || !strings.Contains(asked, `"name":"get_weather"`) {
		rejectAgent(w, asked)
		return
	}
	if !strings.Contains(asked, `"stream":true`) {
		if !strings.Contains(asked, agentSecond) {
			rejectAgent(w, asked)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"sunny in both"}}],`+
			`"usage":{"prompt_tokens":30,"completion_tokens":3,"total_tokens":33}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, delta := range []string{
		`{"role":"assistant","content":""}`, `{"reasoning_content":"two "}`, `{"reasoning_content":"cities"}`,
		`{"content":"I "}`, `{"content":"look."}`,
		`{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"K"}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"öln\"}"}}]}`,
		`{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Rom\"}"}}]}`,
	} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,`+
		`"completion_tokens":9,"total_tokens":29}}`+"\n\ndata: [DONE]\n\n")
}

func rejectAgent(w http.ResponseWriter, asked string) {
	text, _ := json.Marshal("not what an agent asks: " + asked)
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":{"message":%s}}`, text)
}

func TestPythonClientsUseEveryDialect(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	world.run(t, exec.CommandContext(bounded(t), pythonProgram(t, "python"),
		filepath.Join("testdata", "dialects", "client.py")), dialectChecksPython)
}

func TestNodeClientsUseEveryDialect(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	node := nodeProgram(t)
	source, err := os.Open(filepath.Join("testdata", "dialects", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	// A program read from stdin looks for its imports in its working folder.
	command := exec.CommandContext(bounded(t), node, "--input-type=module", "-")
	command.Dir, command.Stdin = nodeFolder(t), source
	world.run(t, command, dialectChecksNode)
}
