package docs_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	settingFlag = regexp.MustCompile(`env:"(CUTROOM_[A-Z0-9_]+)"(?: default:"([^"]*)")?`)
	// settingRow matches a row of docs/settings.md. The second column is the default or the meaning.
	settingRow  = regexp.MustCompile(`(?m)^\| (\x60CUTROOM_[^|]+) \| ([^|]*) \|`)
	settingName = regexp.MustCompile(`\x60((?:CUTROOM)?_[A-Z0-9_]+)\x60`)
	settingRead = regexp.MustCompile(`"(CUTROOM_[A-Z0-9_]+)"`)
)

// Every variable that is listed is read by a program.
func TestSettingsPageMatchesTheCode(t *testing.T) {
	files := texts(t)
	page := map[string]string{}
	for _, row := range settingRow.FindAllStringSubmatch(files["docs/settings.md"], -1) {
		first := ""
		for _, name := range settingName.FindAllStringSubmatch(row[1], -1) {
			if strings.HasPrefix(name[1], "_") { // a short form, as in CUTROOM_A_URL, _KEY
				name[1] = first[:strings.LastIndex(first, "_")] + name[1]
			} else {
				first = name[1]
			}
			page[name[1]] = row[2]
		}
	}
	read := map[string]bool{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, found := range settingRead.FindAllStringSubmatch(text, -1) {
			read[found[1]] = true
		}
		for _, flag := range settingFlag.FindAllStringSubmatch(text, -1) {
			row, listed := page[flag[1]]
			switch value := flag[2]; {
			case !listed && flag[1] != "CUTROOM_PROFILE": // settings of client commands are in docs/cli.md
				t.Errorf("docs/settings.md does not list %s (%s)", flag[1], name)
			case listed && value != "" && value != "0" && value[0] != '$' && row != "`"+value+"`":
				t.Errorf("docs/settings.md: the default of %s is %q, and the code has %q", flag[1], row, value)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if !read[name] {
			t.Errorf("docs/settings.md lists %s, which no program reads", name)
		}
	}
	if len(page) < 35 {
		t.Errorf("found only %d settings in docs/settings.md", len(page))
	}
}
