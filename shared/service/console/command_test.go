package console_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func runNode(t *testing.T, script string, input []byte, arguments ...string) []byte {
	t.Helper()
	node := filepath.Join("..", "..", "..", ".tools", "node", "node_modules", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node" // no Node.js package exists for this system
	}
	command := exec.CommandContext(t.Context(), node, append([]string{"--input-type=module", "-e", script}, arguments...)...)
	command.Stdin, command.Stderr = bytes.NewReader(input), t.Output()
	answer, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// An untrusted file name in a pasted command must not make the terminal execute anything.
func TestCommandsAreQuoted(t *testing.T) {
	texts := []string{
		"plain.mp4", "", "two words", "it's $HOME `id` \"$(id)\" \\ !", "two\nlines", "-o", "née – 映画",
		"clip\x7f\x7f\x7f'; id; '.mp4", "\x1b[2J\x03\x04\r\t", "it's \\ \u009b2J\u0085",
	}
	encoded, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs(filepath.Join("static", "command.js"))
	if err != nil {
		t.Fatal(err)
	}
	script := `const { quote } = await import(process.argv[1]); ` +
		`process.stdout.write(JSON.stringify(JSON.parse(await new Response(process.stdin).text()).map(quote)));`
	answer := runNode(t, script, encoded, "file://"+module)
	var words []string
	if err := json.Unmarshal(answer, &words); err != nil || len(words) != len(texts) {
		t.Fatalf("%s, %v", answer, err)
	}
	for i, text := range texts {
		if strings.ContainsAny(words[i], "\t\r\x1b\x03\x04\x7f\u0085\u009b") {
			t.Errorf("%q is written as %q", text, words[i])
		}
		read, err := exec.CommandContext(t.Context(), "bash", "-c", "printf '%s|' "+words[i]).Output()
		if err != nil || string(read) != text+"|" {
			t.Errorf("%q is read as %q, %v", text, read, err)
		}
	}
}
