package functions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cutroom/functions"
	"cutroom/shared/testkit/lambdatest"
)

// want is the content of the file next to an event. It contains the function's expected response. A
// string between slashes is a regular expression.
type want struct {
	// Status, Header and Body are the response to API Gateway. The response may have additional
	// header fields, but its body must have exactly these fields.
	Status int            `json:"status"`
	Header map[string]any `json:"header"`
	Body   any            `json:"body"`
	// Answer is the response to any other event.
	Answer any `json:"answer"`
}

// Every function responds to the events in its folder as described by the files next to them. If it
// supports both buffered and streamed responses, both are tested.
func TestFunctionsRespondToEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(t)
	for _, function := range functions.All() {
		name := function.Name
		if name == "wake" || name == "scale" {
			continue // these call other AWS services, and have their own tests
		}
		cases := casesOf(t, name)
		if name == "arrived" {
			w.upload(t)
		}
		forms := [][]string{nil}
		if function.Streams {
			forms = append(forms, []string{"CUTROOM_RESPONSE=buffered"})
		}
		for _, form := range forms {
			f := w.start(t, name, form...)
			for _, path := range cases {
				t.Run(name+strings.Join(form, "")+"/"+filepath.Base(path), func(t *testing.T) {
					answers(t, f, path, function.Streams && form == nil)
				})
			}
		}
	}
	w.happened(t)
	w.pictured(t)
	// Six model requests, each sent buffered and streamed, are metered after their responses have ended.
	if metered := w.metered(t); metered.Requests != 12 || metered.CompletionTokens == 0 {
		t.Errorf("metered: %+v", metered)
	}
}

func casesOf(t *testing.T, name string) []string {
	t.Helper()
	cases, err := filepath.Glob(filepath.Join("..", "events", name, "*.want.json"))
	if err != nil || len(cases) == 0 {
		t.Errorf("%s has no events", name)
	}
	for i, path := range cases {
		cases[i] = strings.TrimSuffix(path, ".want.json")
	}
	// Run the listing first. Later, a worker may have run the jobs of other events, which would then be listed too.
	first := filepath.Join("..", "events", "jobs", "list")
	slices.SortStableFunc(cases, func(a, b string) int {
		switch {
		case a == first:
			return -1
		case b == first:
			return 1
		}
		return 0
	})
	return cases
}

func answers(t *testing.T, f *lambdatest.Function, path string, streamed bool) {
	t.Helper()
	event, want := read(t, path)
	if want.Status == 0 {
		answer, err := f.Invoke(t.Context(), event)
		must(t, err)
		differ(t, "the answer", want.Answer, decode(t, answer))
		return
	}
	answer, err := f.Request(t.Context(), event)
	must(t, err)
	if answer.Streamed != streamed {
		t.Errorf("streamed: %v", answer.Streamed)
	}
	judge(t, want, answer.Status, answer.Header, answer.Body)
	// Every response contains API Gateway's request id.
	differ(t, "X-Request-Id", "c6af9ac6-7b61-11e6-9a41-93e8deadbeef", answer.Header.Get("X-Request-Id"))
}

func read(t *testing.T, path string) (event []byte, w want) {
	t.Helper()
	event, err := os.ReadFile(path + ".json")
	must(t, err)
	text, err := os.ReadFile(path + ".want.json")
	must(t, err)
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return event, w
}

func judge(t *testing.T, want want, status int, header http.Header, content io.ReadCloser) {
	t.Helper()
	defer content.Close()
	body, err := io.ReadAll(content)
	must(t, err)
	if status != want.Status {
		t.Fatalf("status %d: %.300s", status, body)
	}
	for field, value := range want.Header {
		differ(t, field, value, header.Get(field))
	}
	if _, text := want.Body.(string); text {
		differ(t, "the body", want.Body, string(body))
	} else if want.Body != nil {
		differ(t, "the body", want.Body, decode(t, body))
	}
}

func decode(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return value
}

func differ(t *testing.T, place string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(object) != len(want) {
			t.Errorf("%s: %v, want %v", place, got, want)
			return
		}
		for key, value := range want {
			differ(t, place+"."+key, value, object[key])
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			t.Errorf("%s: %v, want %v", place, got, want)
			return
		}
		for i, value := range want {
			differ(t, fmt.Sprintf("%s[%d]", place, i), value, list[i])
		}
	case string:
		text := fmt.Sprint(got)
		rest, begins := strings.CutPrefix(want, "/")
		pattern, ends := strings.CutSuffix(rest, "/")
		if !begins || !ends {
			if text != want {
				t.Errorf("%s: %q, want %q", place, text, want)
			}
		} else if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%s: %.300q, want a match of %s", place, text, want)
		}
	default:
		if got != want {
			t.Errorf("%s: %v, want %v", place, got, want)
		}
	}
}
