package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type outcome struct {
	says   string
	status int
	lines  []any
}

func golden(t *testing.T, name string, outcomes []outcome) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	for i, o := range outcomes {
		if slices.ContainsFunc(outcomes[:i], func(before outcome) bool { return before.says == o.says }) {
			t.Fatalf("two cases say %q", o.says)
		}
		fmt.Fprintf(&got, "%s%q: {\"%d\": [\n", []string{"{\n", ",\n"}[min(i, 1)], o.says, o.status)
		for j, line := range o.lines {
			got.WriteString("  ")
			if err := encoder.Encode(line); err != nil {
				t.Fatal(err)
			}
			got.Truncate(got.Len() - 1)
			got.WriteString([]string{",\n", "\n"}[(j+1)/len(o.lines)])
		}
		got.WriteString("]}")
	}
	got.WriteString("\n}\n")
	if !json.Valid(got.Bytes()) {
		t.Fatalf("no JSON: %s", got.String())
	}
	path := filepath.Join("testdata", "golden", name+".json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("not as in %s from line %d on (run with -update and look at the difference):\n%s",
				path, i+1, strings.Join(gotLines[max(0, min(i, len(gotLines))-1):], "\n"))
		}
	}
}

type formCase struct {
	says  string
	parts []part
}

// docs/contract/media.md#forms specifies every form. For each, testdata/golden holds the response
// if the form is rejected, and the job's request otherwise.
func TestFormsFollowTheContract(t *testing.T) {
	video, image := clip(t), picture(t)
	data := upload("data", video)
	reference := upload("reference_image", image)
	prompt := text("prompt", "a watercolor painting")
	everythingWrong := []part{
		upload("data", image), text("prompt", strings.Repeat("é", 4001)), upload("reference_image", video),
		text("seed", "-1"), text("resolution", "1080p"), text("enhance_prompt", "maybe"), text("self_anchor", "2"),
		text("orientation", "square"),
	}
	edited := []formCase{
		{"data is required", []part{prompt}},
		{"the content decides whether data is a video", []part{upload("data", "no video at all"), prompt}},
		{"an image is not a video", []part{upload("data", image), prompt}},
		{"data without a file name is bytes too", []part{text("data", video), prompt}},
		{"an empty file", []part{upload("data", ""), prompt}},
		{"all problems, in the order of the fields", everythingWrong},
		{"seed is optional", []part{data, prompt, text("seed", "7")}},
		{"seed 0 and 4294967295 are the limits", []part{data, prompt, text("seed", "4294967295")}},
		{"seed above", []part{data, prompt, text("seed", "4294967296")}},
		{"seed below", []part{data, prompt, text("seed", "-1")}},
		{"seed is an integer", []part{data, prompt, text("seed", "1.5")}},
		{"an empty value counts as absent", []part{data, prompt, text("seed", ""), text("resolution", ""),
			text("enhance_prompt", "")}},
		{"a file that was not chosen counts as absent", []part{unchosen("data"), prompt}},
		{"an unchosen file next to a chosen one", []part{unchosen("data"), data, prompt, unchosen("data")}},
		{"an empty value for a file counts as absent", []part{text("data", ""), prompt}},
		{"bytes without a file name are bytes", []part{{"data", noName, video}, prompt}},
		{"resolution is 720p", []part{data, prompt, text("resolution", "480p")}},
		{"enhance_prompt is a boolean", []part{data, prompt, text("enhance_prompt", "no")}},
		{"enhance_prompt is not a number", []part{data, prompt, text("enhance_prompt", "2")}},
		{"unknown fields are ignored", []part{text("mystery", "1"), data, prompt, upload("another", "x")}},
		{"a field that is sent twice", []part{data, prompt, text("seed", "1"), text("seed", "2"), data}},
		{"a prompt of 4000 code points", []part{data, text("prompt", strings.Repeat("é", 4000))}},
		{"a prompt of 4001 code points", []part{data, text("prompt", strings.Repeat("é", 4001))}},
	}
	withReference := []formCase{
		{"reference_image is optional", []part{data, prompt, reference}},
		{"reference_image.0 is the same field", []part{data, prompt, upload("reference_image.0", image)}},
		{"a reference that was not chosen counts as absent", []part{data, prompt, unchosen("reference_image.0")}},
		{"only one of its names was chosen", []part{data, prompt, reference, unchosen("reference_image.0")}},
		{"both names are rejected", []part{data, prompt, reference, upload("reference_image.0", image)}},
		{"the reference is an image", []part{data, prompt, upload("reference_image.0", video)}},
	}
	for _, form := range []struct {
		name, model string
		cases       [][]formCase
	}{
		{"restyle", "gen-restyle-2", [][]formCase{edited, {
			{"exactly one of prompt and reference_image: the prompt", []part{data, prompt}},
			{"exactly one of prompt and reference_image: the reference", []part{data, reference}},
			{"exactly one of prompt and reference_image: none", []part{data}},
			{"exactly one of prompt and reference_image: both", []part{data, prompt, reference}},
			{"an empty prompt with a reference counts as absent", []part{data, reference, text("prompt", "")}},
			{"a white-space prompt with a reference counts as absent",
				[]part{data, reference, text("prompt", " \t\r\n\u2003")}},
			{"an unchosen reference with a prompt counts as absent",
				[]part{data, prompt, unchosen("reference_image")}},
			{"enhance_prompt with a prompt", []part{data, prompt, text("enhance_prompt", "off")}},
			{"enhance_prompt with only a reference", []part{data, reference, text("enhance_prompt", "true")}},
			{"invalid enhance_prompt without prompt and reference", []part{data, text("enhance_prompt", "maybe")}},
			{"reference_image.0 is the same field", []part{data, upload("reference_image.0", image)}},
			{"both names are rejected", []part{data, reference, upload("reference_image.0", image)}},
			{"the reference is an image", []part{data, upload("reference_image.0", video)}},
		}}},
		{"edit-self-anchored", "gen-2.5", [][]formCase{edited, withReference, {
			{"the prompt defaults to empty, self_anchor to true", []part{data}},
			{"self_anchor can be turned off", []part{data, text("self_anchor", "F")}},
			{"self_anchor is a boolean", []part{data, text("self_anchor", "-")}},
		}}},
		{"edit", "gen-2.1", [][]formCase{edited, withReference, {
			{"the prompt defaults to empty", []part{data}},
			{"self_anchor is not a field of it", []part{data, text("self_anchor", "-")}},
		}}},
		{"try-on", "gen-vton-3.6", [][]formCase{edited, withReference, {
			{"the prompt defaults to empty", []part{data}},
		}}},
		{"clip", "gen-clip", [][]formCase{edited, withReference, {
			{"the prompt is required", []part{data}},
			{"an empty prompt counts as absent", []part{data, text("prompt", "")}},
			{"a prompt of white space counts as absent", []part{data, text("prompt", " \n ")}},
			{"a prompt with too much white space", []part{data, text("prompt", strings.Repeat(" ", 70_000)+"x")}},
		}}},
		{"image", "gen-image-2", [][]formCase{{
			{"data and prompt are required", nil},
			{"data is an image", []part{upload("data", video), prompt}},
			{"resolution defaults to 720p", []part{upload("data", image), prompt}},
			{"resolution 480p", []part{upload("data", image), prompt, text("resolution", "480p")}},
			{"no other resolution", []part{upload("data", image), prompt, text("resolution", "720P")}},
			{"a reference", []part{upload("data", image), prompt, upload("reference_image.0", image)}},
			{"all problems, in the order of the fields", append([]part{upload("data", video)}, everythingWrong[1:]...)},
		}}},
		{"image-to-video", "gen-pro-i2v", [][]formCase{{
			{"data is required", []part{prompt}},
			{"data is an image", []part{upload("data", video)}},
			{"a first and a last image", []part{upload("data", image), upload("last_image", image), text("resolution", "480p")}},
			{"the last image is sent twice", []part{upload("data", image), upload("last_image", image), upload("reference_image", image)}},
		}}},
		{"text-to-video", "gen-pro-t2v", [][]formCase{{
			{"the prompt is required", []part{text("seed", "5")}},
			{"a prompt of white space counts as absent", []part{text("prompt", "\u00a0")}},
			{"a prompt keeps the white space around it", []part{text("prompt", " x ")}},
			{"the defaults", []part{prompt}},
			{"everything", []part{prompt, text("seed", "5"), text("resolution", "480p"), text("orientation", "portrait"),
				text("enhance_prompt", "0")}},
			{"all problems, in the order of the fields", everythingWrong},
		}}},
	} {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t, setup{})
			var outcomes []outcome
			for _, c := range slices.Concat(form.cases...) {
				outcomes = append(outcomes, w.outcome(c.says, w.post(form.model, studio, c.parts...)))
			}
			golden(t, form.name, outcomes)
		})
	}
}

func (w *world) outcome(says string, a answer) outcome {
	w.t.Helper()
	o := outcome{says: says, status: a.status}
	if a.status != http.StatusOK {
		for _, p := range w.problems(a) {
			if text, ok := p.Input.(string); ok {
				p.Input = shortened(text)
			}
			o.lines = append(o.lines, p)
		}
		return o
	}
	j := w.record(w.accepted(a))
	inputs := map[string]string{}
	for name, input := range j.Request.Inputs {
		inputs[name] = input.MIME
	}
	o.lines = []any{map[string]any{
		"model": j.Model, "lane": j.Lane, "prompt": shortened(j.Request.Prompt), "options": j.Request.Options,
		"inputs": inputs,
	}}
	return o
}

func shortened(text string) string {
	if n := utf8.RuneCountInString(text); n > 100 {
		return fmt.Sprintf("%.10s… (%d characters)", text, n)
	}
	return text
}

func TestValuesAreParsedLikePydantic(t *testing.T) {
	w := newWorld(t, setup{})
	seeds := map[string]uint32{
		"0": 0, "4294967295": 4294967295, "007": 7, "+1": 1, "-0": 0, " 12\t": 12, "\n3": 3, "1_000": 1000, "1.0": 1,
		"1_0.00": 10,
	}
	for text, want := range seeds {
		a := w.request("POST", "/v1/jobs/gen-pro-t2v", studio,
			strings.NewReader(url.Values{"prompt": {"x"}, "seed": {text}}.Encode()),
			"Content-Type: application/x-www-form-urlencoded")
		if a.status != 200 {
			t.Errorf("seed %q: %d %s", text, a.status, a.body)
			continue
		}
		if got := w.record(w.accepted(a)).Seed; got != want {
			t.Errorf("seed %q was read as %d", text, got)
		}
	}
	refused := map[string]string{
		"1.5": "int_parsing", "1.": "int_parsing", ".0": "int_parsing", "1e3": "int_parsing", "0x10": "int_parsing",
		"_1":   "int_parsing",
		"1__0": "int_parsing", "1_": "int_parsing", "1.0_0": "int_parsing", "+-1": "int_parsing", "- 1": "int_parsing",
		"1 2": "int_parsing",
		"٣":   "int_parsing", "1\x00": "int_parsing", "-1": "greater_than_equal", "4294967296": "less_than_equal",
		strings.Repeat("9", 40): "less_than_equal", "-" + strings.Repeat("9", 40): "greater_than_equal",
	}
	for text, want := range refused {
		if got := w.problemTypes(url.Values{"prompt": {"x"}, "seed": {text}}); !slices.Equal(got, []string{want}) {
			t.Errorf("seed %q: %v, want %s", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		"true": true, "TRUE": true, "1": true, "on": true, "Yes": true, "t": true, "y": true, "Y": true,
		"false": false, "False": false, "0": false, "oFF": false, "no": false, "f": false, "n": false,
	} {
		a := w.request("POST", "/v1/jobs/gen-pro-t2v", studio,
			strings.NewReader(url.Values{"prompt": {"x"}, "enhance_prompt": {text}}.Encode()),
			"Content-Type: application/x-www-form-urlencoded")
		if got := w.record(w.accepted(a)).Request.Flag("enhance_prompt"); got != want {
			t.Errorf("enhance_prompt %q was read as %v", text, got)
		}
	}
	for _, text := range []string{" true", "2", "-1", "truee", "null", "ja"} {
		if got := w.problemTypes(url.Values{"prompt": {"x"}, "enhance_prompt": {text}}); !slices.Equal(got,
			[]string{"bool_parsing"}) {
			t.Errorf("enhance_prompt %q: %v", text, got)
		}
	}
}

func (w *world) problemTypes(form url.Values) (types []string) {
	w.t.Helper()
	a := w.request("POST", "/v1/jobs/gen-pro-t2v", studio, strings.NewReader(form.Encode()),
		"Content-Type: application/x-www-form-urlencoded")
	for _, p := range w.problems(a) {
		types = append(types, p.Type)
	}
	return types
}

type problem struct {
	Loc   []string       `json:"loc"`
	Msg   string         `json:"msg"`
	Type  string         `json:"type"`
	Input any            `json:"input"`
	Ctx   map[string]any `json:"ctx"`
}

func (w *world) problems(a answer) []problem {
	w.t.Helper()
	var keys struct{ Detail []map[string]any }
	var body struct{ Detail []problem }
	if err := errors.Join(json.Unmarshal([]byte(a.body), &keys), json.Unmarshal([]byte(a.body), &body)); err != nil ||
		a.status != 422 || len(body.Detail) == 0 {
		w.t.Errorf("no validation error: %d %s: %v", a.status, a.body, err)
		return nil
	}
	for i, item := range keys.Detail {
		if keys := slices.Sorted(maps.Keys(item)); !slices.Equal(keys, []string{"ctx", "input", "loc", "msg", "type"}) ||
			body.Detail[i].Ctx == nil {
			w.t.Errorf("the keys of a problem are %v", keys)
		}
	}
	return body.Detail
}

func TestBodyEncodingsAreChecked(t *testing.T) {
	w := newWorld(t, setup{})
	multi, multiType := multiform(text("prompt", "a; b & c"))
	const urlType = "application/x-www-form-urlencoded"
	var outcomes []outcome
	for _, c := range []struct{ says, model, contentType, body string }{
		{"text-to-video is urlencoded", "gen-pro-t2v", urlType, "prompt=a+b%26c&seed=1"},
		{"with a charset", "gen-pro-t2v", urlType + "; charset=UTF-8", "prompt=x"},
		{"text-to-video in parts", "gen-pro-t2v", multiType, multi},
		{"a semicolon in a value", "gen-pro-t2v", urlType, "prompt=a;b"},
		{"an empty urlencoded body has no fields", "gen-pro-t2v", urlType, ""},
		{"names without values are absent", "gen-pro-t2v", urlType, "&&prompt&seed="},
		{"names are case-sensitive", "gen-pro-t2v", urlType, "PROMPT=x"},
		{"a broken escape", "gen-pro-t2v", urlType, "prompt=%zz"},
		{"invalid UTF-8", "gen-pro-t2v", urlType, "prompt=%ff%fe"},
		{"a field twice", "gen-pro-t2v", urlType, "prompt=a&prompt=b&prompt=c"},
		{"no content type", "gen-pro-t2v", "", "prompt=x"},
		{"JSON", "gen-pro-t2v", "application/json", `{"prompt":"x"}`},
		{"a urlencoded form has no files", "gen-2.5", urlType, "data=file_abc&prompt=x"},
		{"JSON to a form with files", "gen-2.5", "application/json", "{}"},
		{"no content type to a form with files", "gen-2.5", "", "x"},
		{"no boundary", "gen-2.5", "multipart/form-data", multi},
		{"another boundary", "gen-2.5", "multipart/form-data; boundary=x", multi},
		{"an empty body", "gen-2.5", "multipart/form-data; boundary=x", ""},
		{"no parts", "gen-2.5", "multipart/form-data; boundary=x", "--x--\r\n"},
		{"no parts and no line break", "gen-2.5", "multipart/form-data; boundary=x", "--x--"},
		{"a part without a name", "gen-2.5", "multipart/form-data; boundary=x",
			"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n"},
		{"a part without a header", "gen-2.5", "multipart/form-data; boundary=x", "--x\r\n\r\nx\r\n--x--\r\n"},
	} {
		var header []string
		if c.contentType != "" {
			header = append(header, "Content-Type: "+c.contentType)
		}
		outcomes = append(outcomes, w.outcome(c.says, w.request("POST", "/v1/jobs/"+c.model, studio,
			strings.NewReader(c.body), header...)))
	}
	golden(t, "bodies", outcomes)
	w.nothingStays()
}

func TestReferencesAreResolved(t *testing.T) {
	video, image := clip(t), picture(t)
	w := newWorld(t, setup{})
	for _, f := range []struct{ id, account, mime, bytes string }{
		{"file_video", "studio", "video/mp4", video},
		{"file_image", "studio", "image/png", image},
		{"file_notes", "studio", "text/plain", "notes"},
		{"file_theirs", "rival", "video/mp4", video},
		{"file_feigned", "studio", "video/mp4", "bytes that were declared a video"},
	} {
		w.shelve(file.File{ID: f.id, Account: f.account, MIME: f.mime, Size: int64(len(f.bytes)), Blob: "files/" + f.id})
		if _, err := w.blobs.Put(t.Context(), "files/"+f.id, strings.NewReader(f.bytes)); err != nil {
			t.Fatal(err)
		}
	}
	// This record's bytes have just been deleted.
	w.shelve(file.File{ID: "file_gone", Account: "studio", MIME: "video/mp4", Size: 9, Blob: "files/file_gone"})

	stored := len(w.files())
	var outcomes []outcome
	for _, c := range []formCase{
		{"a reference in a part with a file name", []part{upload("data", "file_video")}},
		{"a reference in a part without a file name", []part{text("data", "file_video"), text("reference_image.0", "file_image")}},
		{"an unknown reference", []part{text("data", "file_unknown")}},
		{"another account's file is unknown", []part{text("data", "file_theirs")}},
		{"a file without bytes is unknown", []part{text("data", "file_gone")}},
		{"an image instead of a video", []part{text("data", "file_image")}},
		{"a file that is not media", []part{text("data", "file_notes")}},
		{"a file falsely declared as a video", []part{text("data", "file_feigned")}},
		{"the longest possible reference", []part{text("data", "file_"+strings.Repeat("a", 64))}},
		{"a longer text is bytes", []part{text("data", "file_"+strings.Repeat("a", 65))}},
		{"a reference with a line break is bytes", []part{text("data", "file_video\n")}},
		{"a reference with a hyphen is bytes", []part{text("data", "file_vi-deo")}},
		{"two references", []part{text("data", "file_unknown"), text("reference_image", "file_nothing")}},
	} {
		outcomes = append(outcomes, w.outcome(c.says, w.post("gen-2.5", studio, c.parts...)))
	}
	golden(t, "references", outcomes)

	id := w.accepted(w.post("gen-2.5", studio, text("data", "file_video")))
	if err := w.blobs.Delete(t.Context(), "files/file_video"); err != nil {
		t.Fatal(err)
	}
	want := job.Input{Blob: "jobs/" + id + "/data", MIME: "video/mp4", Size: int64(len(video)), File: "files/file_video",
		Reference: "file_video"}
	if got := w.record(id).Request.Inputs["data"]; got != want {
		t.Errorf("the input is %+v, want %+v", got, want)
	}
	if content(t, filepath.Join(w.root, want.Blob)) != video {
		t.Error("the job does not own its input")
	}
	const ofAccepted = 3 + 1 // the inputs of two jobs in the table, and of this job
	if got, want := len(w.files()), stored-1+ofAccepted; got != want {
		t.Errorf("%d files, want %d: %v", got, want, w.files())
	}
}

func (w *world) shelve(f file.File) {
	w.t.Helper()
	f.CreatedAt = w.now()
	if err := w.shelf.Create(w.t.Context(), f, 0); err != nil {
		w.t.Fatal(err)
	}
}
