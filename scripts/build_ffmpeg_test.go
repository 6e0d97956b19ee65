package scripts_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Without this test, a filter that only Debian's ffmpeg has would fail only in the images.
func TestImageFFmpegHasEveryFilter(t *testing.T) {
	script, err := os.ReadFile("build-ffmpeg.sh")
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for _, line := range regexp.MustCompile(`(?m)^filters=(.*)$`).FindAllSubmatch(script, -1) {
		built = append(built, strings.Split(strings.TrimPrefix(string(line[1]), "$filters,"), ",")...)
	}
	listed, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-filters").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, line := range strings.Split(string(listed), "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && strings.Contains(fields[2], "->") {
			known[fields[1]] = true
		}
	}
	for _, name := range built {
		if !known[name] {
			t.Errorf("build-ffmpeg.sh lists %s, which is not a filter of ffmpeg", name)
		}
	}

	// These words in the code do not mean the filters of the same name.
	for _, word := range []string{"multiply", "copy", "reverse", "normalize"} {
		delete(known, word)
	}
	// If ffmpeg lacks these filters, the engine uses deshake.
	delete(known, "vidstabdetect")
	delete(known, "vidstabtransform")
	used := map[string]string{}
	root := filepath.Join("..", "shared", "engine")
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		// The other files of this package contain words for prompts.
		if filepath.Base(filepath.Dir(path)) == "look" && entry.Name() != "edit.go" {
			return nil
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, literal := range literals(t, path) {
			for _, name := range filtersIn(literal) {
				if known[name] {
					used[name] = path
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if used["zscale"] == "" || used["lut3d"] == "" {
		t.Fatalf("no filter graph was found under %s", root)
	}
	for name, path := range used {
		if !slices.Contains(built, name) {
			t.Errorf("%s uses the filter %s, which build-ffmpeg.sh does not list", path, name)
		}
	}
}

func literals(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, text)
		}
		return true
	})
	return found
}

// filter matches a filter's name in a filter graph. The name is at the start or after a comma, a semicolon or a link
// label. After it are options, a comma, a semicolon, a link label or the end.
var filter = regexp.MustCompile(`(?:^|[,;\]])([a-z][a-z0-9_]*)(?:$|[=,;\[])`)

// filtersIn returns the possible filter names in a fragment of a filter graph.
func filtersIn(text string) []string {
	var names []string
	for {
		at := filter.FindStringSubmatchIndex(text)
		if at == nil {
			return names
		}
		names = append(names, text[at[2]:at[3]])
		text = text[at[3]:]
	}
}
