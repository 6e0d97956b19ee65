package mcpserver

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"cutroom/shared/client"
	"cutroom/shared/testkit/await"
)

// Many agents send null for optional arguments.
func TestNullArgumentsCountAsAbsent(t *testing.T) {
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"clientInfo":{"name":"a","version":"1"},"capabilities":{}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for arguments, want := range map[string]string{
		`{"prompt":"x","model":null,"seed":null,"resolution":null}`: "the test has no service",
		`{"seed":null, "prompt" : "x" }`:                            "the test has no service",
		`{"prompt":null}`:                                           "prompt",
		`{"prompt":["null"]}`:                                       "prompt",
		`null`:                                                      "prompt",
	} {
		call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"generate","arguments":` + arguments + "}}\n"
		waits, end := io.Pipe()
		read, write := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- Serve(await.Context(t), Config{
				Connect: func() (*client.Client, error) { return nil, errors.New("the test has no service") },
			}, io.MultiReader(strings.NewReader(begin+call), waits), write)
		}()
		lines := bufio.NewScanner(read)
		for lines.Scan() && !strings.Contains(lines.Text(), `"id":7`) {
		}
		if !strings.Contains(lines.Text(), want) || strings.Contains(lines.Text(), "no service") != strings.Contains(want, "no service") {
			t.Errorf("%s: %s, want %q", arguments, lines.Text(), want)
		}
		end.Close()
		await.Receive(t, "served", served)
	}
}
