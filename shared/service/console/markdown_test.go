package console_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// On these texts, the Markdown library would take too long.
func TestHostileMarkdownIsShownAsText(t *testing.T) {
	plain := []string{
		strings.Repeat(">", 20_000), strings.Repeat("> ", 5000) + "x", strings.Repeat("- ", 5000) + "x",
		strings.Repeat("1. ", 5000) + "x", strings.Repeat("a", 40_000) + "@", strings.Repeat("*a**b", 8000),
		"**A bold start.**\n\n" + strings.Repeat("[", 20_000),
	}
	var deep strings.Builder
	for i := range 90 {
		deep.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	built := []string{strings.Repeat("> ", 90) + "x", deep.String(), strings.Repeat("-", 200) + "\n\n**a**"}

	encoded, err := json.Marshal(append(plain, built...))
	if err != nil {
		t.Fatal(err)
	}
	// This test represents an element as a list of its children.
	const script = `const element = () => { const e = []; e.append = (...c) => e.push(...c); e.setAttribute = () => {}; ` +
		`return e; }; globalThis.document = { createElement: element }; ` +
		`const depth = e => Array.isArray(e) ? 1 + Math.max(0, ...e.map(depth)) : 0; ` +
		`const { render } = await import(process.argv[1]); ` +
		`process.stdout.write(JSON.stringify(JSON.parse(await new Response(process.stdin).text()).map(text => { const made = render(text); ` +
		`return { plain: made.length === 1 && made[0] === text, depth: depth(made) }; })));`
	module, err := filepath.Abs(filepath.Join("static", "markdown.js"))
	if err != nil {
		t.Fatal(err)
	}
	answer := runNode(t, script, encoded, "file://"+module)
	var shown []struct {
		Plain bool
		Depth int
	}
	if err := json.Unmarshal(answer, &shown); err != nil || len(shown) != len(plain)+len(built) {
		t.Fatalf("%s, %v", answer, err)
	}
	const deepest = 60 // each list level has two elements
	for i, made := range shown {
		if made.Plain != (i < len(plain)) || made.Depth > deepest {
			t.Errorf("text %d: as plain text: %v, %d elements deep", i, made.Plain, made.Depth)
		}
	}
}
