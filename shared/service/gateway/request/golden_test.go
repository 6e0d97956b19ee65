package request_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
)

// The files are named NAME.sent.json and NAME.forwarded.json, where NAME starts with the route. The
// model server's name for the model is "upstream/name".
func TestRequestsMatchGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/forwarded/*.sent.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden requests (%v)", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sent.json")
		t.Run(name, func(t *testing.T) {
			sent, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.Replace(file, ".sent.", ".forwarded.", 1))
			if err != nil {
				t.Fatal(err)
			}
			route := catalog.Chat
			if strings.HasPrefix(name, "completions-") {
				route = catalog.Completions
			}
			who := caller(t)
			who.MaxTokens = 500
			r, problem := request.Parse(route, sent, who)
			if problem != nil {
				t.Fatalf("rejected: %s (%s)", problem.Message, problem.Param)
			}
			if got := r.Body(jsonedit.Quote("upstream/name")).Bytes(); string(got) != string(want) {
				t.Errorf("forwarded\n%s\nwant\n%s", got, want)
			}
		})
	}
}
