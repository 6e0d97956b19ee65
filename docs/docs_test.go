package docs_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = ".."

// maxText is the maximum size of a file that is treated as text, in bytes.
const maxText = 1 << 20

var unread = []string{".git", ".tools", ".cutroom", ".local-aws", "bin", "cdk.out", "test-output", "node_modules", "__pycache__"}

// cited matches a page that code refers to by its path from the root, such as docs/cost.md,
// optionally with a heading's anchor. It does not match within a longer path or URL.
var cited = regexp.MustCompile(
	`(?:^|[^\w./-])((?:docs/(?:[\w-]+/)*[\w-]+|README|ARCHITECTURE|CONTRIBUTING|SECURITY|CHANGELOG)\.md(?:#[\w-]*)?)`)

// links matches a Markdown link with an optional title.
var links = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)

func TestCitationsPointToHeadings(t *testing.T) {
	files := texts(t)
	headings := headingsOf(files)
	count := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for number, line := range strings.Split(files[name], "\n") {
			for _, citation := range cited.FindAllStringSubmatch(line, -1) {
				if isPage(name) && strings.Contains(line, "]("+citation[1]) {
					continue // a link, whose path is relative to its page
				}
				count++
				if problem := check(headings, citation[1]); problem != "" {
					t.Errorf("%s:%d: %s", name, number+1, problem)
				}
			}
		}
	}
	if count == 0 {
		t.Fatal("found no citation: the pattern no longer matches")
	}
}

func TestPageLinksPointToHeadings(t *testing.T) {
	files := texts(t)
	headings := headingsOf(files)
	count := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isPage(name) {
			continue
		}
		if strings.Contains(files[name], "**(extension)*") {
			t.Errorf("%s: *(extension)* has an extra asterisk", name)
		}
		for _, link := range links.FindAllStringSubmatch(withoutFences(files[name]), -1) {
			target := link[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			count++
			page, anchor, _ := strings.Cut(target, "#")
			if page == "" {
				page = name
			} else {
				page = path.Join(path.Dir(name), page)
			}
			if anchor != "" {
				page += "#" + anchor
			}
			if problem := check(headings, page); problem != "" {
				t.Errorf("%s: the link to %s: %s", name, target, problem)
			}
		}
	}
	if count == 0 {
		t.Fatal("found no link: the pattern no longer matches")
	}
}

func TestAnchorsMatchGitHub(t *testing.T) {
	page := "# Two words\n\n```sh\n# no heading\n```\n\n## `GET /v1/x`, and_more (twice)\n\n## Twice\n\n## Twice\n\n" +
		"## [A link](x.md) *here*\n"
	want := []string{"two-words", "get-v1x-and_more-twice", "twice", "twice-1", "a-link-here"}
	if got := anchors(page); !slices.Equal(got, want) {
		t.Errorf("anchors: got %q, want %q", got, want)
	}
}

func check(headings map[string][]string, citation string) string {
	page, anchor, anchored := strings.Cut(citation, "#")
	known, ok := headings[page]
	if !ok {
		if _, err := os.Stat(path.Join(root, page)); err == nil && !anchored {
			return "" // a file or folder that is not a page
		}
		return "missing page " + page
	}
	if anchored && !slices.Contains(known, anchor) {
		return page + " has no heading #" + anchor
	}
	return ""
}

func texts(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains(unread, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil || info.Size() > maxText {
			return err
		}
		content, err := os.ReadFile(path.Join(root, name))
		if err == nil && !bytes.ContainsRune(content, 0) {
			files[name] = string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func isPage(name string) bool { return strings.HasSuffix(name, ".md") }

func headingsOf(files map[string]string) map[string][]string {
	headings := map[string][]string{}
	for name, text := range files {
		if isPage(name) {
			headings[name] = anchors(text)
		}
	}
	return headings
}

var (
	heading    = regexp.MustCompile(`(?m)^#{1,6}[ \t]+(.+?)[ \t]*#*$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub makes for headings.
func anchors(page string) []string {
	var found []string
	seen := map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(withoutFences(page), -1) {
		text := linkText.ReplaceAllString(match[1], "$1")
		text = notAnchors.ReplaceAllString(strings.ToLower(text), "")
		anchor := strings.ReplaceAll(text, " ", "-")
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor += "-" + strconv.Itoa(n)
		}
		found = append(found, anchor)
	}
	return found
}

var fences = regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?^[ \t]*(```|~~~)[ \t]*$")

// withoutFences removes code blocks.
func withoutFences(page string) string { return fences.ReplaceAllString(page, "") }
