package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	"image/png"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/api"
	"cutroom/shared/testkit/await"
)

func openAIWorld(t *testing.T, s setup) *world {
	t.Helper()
	s.groups = []api.Group{
		api.OpenAIImages, api.OpenAIVideos, api.OpenAIContent, api.Shares, api.Jobs, api.Files, api.Tokens, api.Keys,
	}
	return newWorld(t, s)
}

func (w *world) openAI(method, path, key, contentType, body string, header ...string) answer {
	w.t.Helper()
	if key != "" {
		header = append(header, "Authorization: Bearer "+key)
	}
	if contentType != "" {
		header = append(header, "Content-Type: "+contentType)
	}
	return w.request(method, path, "", strings.NewReader(body), header...)
}

func (w *world) openAIForm(path, key string, parts ...part) answer {
	w.t.Helper()
	body, contentType := multiform(parts...)
	return w.openAI(http.MethodPost, path, key, contentType, body)
}

type openAIFailure struct {
	Error *struct {
		Message, Type string
		Param, Code   *string
	}
}

func (a answer) openAIError(t *testing.T) (param, code string) {
	t.Helper()
	var body openAIFailure
	if json.Unmarshal([]byte(a.body), &body) != nil || body.Error == nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Fatalf("not an OpenAI error: %d %s", a.status, a.body)
	}
	if body.Error.Param != nil {
		param = *body.Error.Param
	}
	if body.Error.Code != nil {
		code = *body.Error.Code
	}
	return param, code
}

type openAIVideo struct {
	ID, Object, Model, Status, Prompt string
	Progress                          int
	CreatedAt                         int64 `json:"created_at"`
	CompletedAt, ExpiresAt            *int64
	Seconds, Size                     *string
	RemixedFrom                       string `json:"remixed_from_video_id"`
	Error                             *struct{ Code, Message string }
}

func (a answer) video(t *testing.T) (v openAIVideo) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != 200 || v.Object != "video" {
		t.Fatalf("not a video: %d %s", a.status, a.body)
	}
	return v
}

func smallPNG(t *testing.T) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 40, 30))
	picture.Set(1, 1, color.White)
	var text bytes.Buffer
	if err := png.Encode(&text, picture); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// copying returns the input as the result.
func copying(_ context.Context, spec engine.Spec) error {
	input, err := os.ReadFile(spec.Data.Path)
	if err != nil {
		return err
	}
	return os.WriteFile(spec.Output, input, 0o600)
}

func TestOpenAIRejectsHostileCalls(t *testing.T) {
	w := openAIWorld(t, setup{maxUpload: 1 << 20, imageWait: time.Second})
	movie, photo := clip(t), smallPNG(t)
	const edits, videos, jsonType = "/v1/images/edits", "/v1/videos", "application/json"
	model, imageModel, prompt := text("model", "gen-2.5"), text("model", "gen-image-2"), text("prompt", "winter")
	photoPart, moviePart := upload("image", photo), upload("input_reference", movie)
	own := w.openAIForm(videos, studio, model, prompt, moviePart).video(t).ID
	imageJob := w.accepted(w.post("gen-image-2", studio, upload("data", photo), text("prompt", "x")))
	var stored struct {
		ID string
	}
	form, formType := multiform(upload("file", movie))
	_ = json.Unmarshal([]byte(w.request("POST", "/v1/files", rival, strings.NewReader(form), "Content-Type: "+formType).body), &stored)
	if stored.ID == "" {
		t.Fatal("no file was stored")
	}
	before := len(w.files())
	data := func(kind, content string) string {
		return `"data:` + kind + `;base64,` + base64.StdEncoding.EncodeToString([]byte(content)) + `"`
	}

	type call struct {
		name                          string
		method, path, key, kind, body string
		status                        int
		param, code                   string
	}
	calls := []call{}
	form2 := func(name, path string, status int, param, code string, parts ...part) {
		body, kind := multiform(parts...)
		calls = append(calls, call{name, "POST", path, studio, kind, body, status, param, code})
	}
	asJSON := func(name, path, body string, status int, param, code string) {
		calls = append(calls, call{name, "POST", path, studio, jsonType, body, status, param, code})
	}
	long := []part{imageModel, prompt, photoPart}
	for i := range 5 {
		long = append(long, text(strconv.Itoa(i), strings.Repeat("a", 64<<10)))
	}
	two := `"images":[` + data("image/png", photo) + `,` + data("image/png", photo) + `]}`
	asJSON("a text named like a list's file", edits, `{"model":"gen-9","prompt":"x","image.1":"x",`+two, 404, "model", "model_not_found")
	for _, name := range []string{"image", "image[", "image[1"} {
		asJSON("a text as "+name, edits, `{"model":"gen-image-2","prompt":"x","`+name+`":"x",`+two, 400, "image", "invalid_value")
	}
	form2("many long fields", edits, 400, "", "invalid_value", long...)
	form2("no model", edits, 400, "model", "missing_required_parameter", prompt, photoPart)
	form2("empty model", edits, 400, "model", "missing_required_parameter", text("model", ""), prompt, photoPart)
	form2("two different models", videos, 400, "model", "invalid_value", model, text("model", "gen-2.1"), prompt, moviePart)
	form2("unknown model", edits, 404, "model", "model_not_found", text("model", "gpt-image-2"), prompt, photoPart)
	form2("long model", edits, 404, "model", "model_not_found", text("model", strings.Repeat("m", 70_000)), prompt, photoPart)
	form2("video model for an image", edits, 404, "model", "model_not_found", model, prompt, photoPart)
	form2("image model for a video", videos, 404, "model", "model_not_found", imageModel, prompt, moviePart)
	form2("chat model for a video", videos, 404, "model", "model_not_found", text("model", "cutroom-echo"), prompt)
	form2("image from text", "/v1/images/generations", 404, "model", "model_not_found", imageModel, prompt)
	form2("no image", edits, 400, "image", "missing_required_parameter", imageModel, prompt)
	form2("empty image", edits, 400, "image", "invalid_value", imageModel, prompt, upload("image", ""))
	form2("unchosen image", edits, 400, "image", "missing_required_parameter", imageModel, prompt, unchosen("image"))
	form2("text as an image", edits, 400, "image", "invalid_value", imageModel, prompt, text("image", "a cat"))
	form2("SVG as an image", edits, 400, "image", "invalid_value", imageModel, prompt, upload("image", "<svg xmlns='http://www.w3.org/2000/svg'/>"))
	form2("three images", edits, 400, "image", "invalid_value", imageModel, prompt, upload("image[]", photo), upload("image[]", photo), upload("image[]", photo))
	form2("mask", edits, 400, "mask", "invalid_value", imageModel, prompt, photoPart, upload("mask", photo))
	form2("no prompt", edits, 400, "prompt", "missing_required_parameter", imageModel, photoPart)
	form2("long prompt", edits, 400, "prompt", "invalid_value", imageModel, photoPart, text("prompt", strings.Repeat("x", 4001)))
	for _, n := range []string{"0", "-1", "5", "1000000000000", "1e3", "two", "1.5", "0x2"} {
		code := "invalid_type"
		switch n {
		case "0", "-1":
			code = "integer_below_min_value"
		case "5", "1000000000000":
			code = "integer_above_max_value"
		}
		form2("n="+n, edits, 400, "n", code, imageModel, prompt, photoPart, text("n", n))
	}
	for _, size := range []string{"0x0", "1280", "1280x", "x720", "1280X720", "-1x5", "1280x720x3", "99999x99999", "1e3x1e3", "huge", "١٢٨٠x720"} {
		form2("size="+size, edits, 400, "size", "invalid_value", imageModel, prompt, photoPart, text("size", size))
		form2("video size="+size, videos, 400, "size", "invalid_value", model, prompt, moviePart, text("size", size))
	}
	for _, seconds := range []string{"0", "-4", "NaN", "Inf", "four", "3601", "1e9"} {
		form2("seconds="+seconds, videos, 400, "seconds", "invalid_value", model, prompt, moviePart, text("seconds", seconds))
	}
	form2("response_format", edits, 400, "response_format", "invalid_value", imageModel, prompt, photoPart, text("response_format", "file"))
	form2("output_format", edits, 400, "output_format", "invalid_value", imageModel, prompt, photoPart, text("output_format", "svg"))
	form2("link to a JPEG", edits, 400, "output_format", "invalid_value", imageModel, prompt, photoPart, text("output_format", "jpeg"), text("response_format", "url"))
	form2("output_compression", edits, 400, "output_compression", "integer_above_max_value", imageModel, prompt, photoPart, text("output_compression", "101"))
	form2("stream that is no boolean", edits, 400, "stream", "invalid_type", imageModel, prompt, photoPart, text("stream", "often"))
	form2("seed", edits, 400, "seed", "integer_above_max_value", imageModel, prompt, photoPart, text("seed", "4294967296"))
	form2("webhook to this machine", edits, 400, "webhook_url", "invalid_value", imageModel, prompt, photoPart, text("webhook_url", "http://127.0.0.1/"))
	form2("large image", edits, 400, "image", "invalid_value", imageModel, prompt, upload("image", photo+strings.Repeat("x", 1<<20)))
	form2("no video", videos, 400, "input_reference", "missing_required_parameter", model, prompt)
	form2("only an image", videos, 400, "input_reference", "missing_required_parameter", model, prompt, upload("input_reference", photo))
	form2("image as the video", videos, 400, "input_reference", "missing_required_parameter", model, prompt, photoPart)
	form2("input_reference of an image edit", edits, 400, "input_reference", "invalid_value", imageModel, prompt, moviePart)
	form2("two videos", videos, 400, "input_reference", "invalid_value", model, prompt, moviePart, moviePart)
	form2("file for a model without input", videos, 400, "input_reference", "invalid_value", text("model", "gen-pro-t2v"), prompt, moviePart)
	form2("file of another account", videos, 400, "input_reference", "invalid_value", model, prompt, text("input_reference[file_id]", stored.ID))
	form2("path as a file", videos, 400, "input_reference", "invalid_value", model, prompt, text("input_reference[file_id]", "file_../../etc/passwd"))
	form2("URL in a form", videos, 400, "input_reference", "invalid_value", model, prompt, text("input_reference[image_url]", "http://169.254.169.254/"))
	form2("101 parts", edits, 400, "", "invalid_value", slices.Repeat([]part{text("user", "x")}, 101)...)

	asJSON("no body", videos, "", 400, "model", "missing_required_parameter")
	asJSON("syntax", videos, `{"model": `, 400, "", "invalid_json")
	asJSON("not UTF-8", videos, "{\"model\": \"\xff\"}", 400, "", "invalid_json")
	asJSON("large", videos, `{"prompt":"`+strings.Repeat("x", 9<<20)+`"}`, 413, "", "request_too_large")
	asJSON("model is a number", videos, `{"model": 1}`, 400, "model", "invalid_value")
	asJSON("size is an object", videos, `{"model": "gen-pro-t2v", "prompt": "x", "size": {}}`, 400, "size", "invalid_value")
	asJSON("URL", videos, `{"model": "gen-2.5", "prompt": "x", "input_reference": {"image_url": "https://example.com/a.mp4"}}`, 400, "input_reference", "invalid_value")
	asJSON("local file", videos, `{"model": "gen-2.5", "prompt": "x", "input_reference": {"image_url": "file:///etc/passwd"}}`, 400, "input_reference", "invalid_value")
	asJSON("not base64", videos, `{"model": "gen-2.5", "prompt": "x", "input_reference": {"image_url": "data:video/mp4;base64,AAAA*A=="}}`, 400, "input_reference", "invalid_value")
	asJSON("file is a number", videos, `{"model": "gen-2.5", "prompt": "x", "input_reference": 7}`, 400, "input_reference", "invalid_value")
	asJSON("file of another account", videos, `{"model": "gen-2.5", "prompt": "x", "input_reference": {"file_id": "`+stored.ID+`"}}`, 400, "input_reference", "invalid_value")
	asJSON("n is an object", edits, `{"model": "gen-image-2", "prompt": "x", "n": {"a": 1}, "images": [{"image_url": `+data("image/png", photo)+`}]}`, 400, "n", "invalid_type")
	asJSON("many files", videos, `{"model": "gen-2.5", "prompt": "x", "input_reference": [`+strings.Repeat(`"file_0",`, 4000)+`"file_0"]}`, 400, "input_reference", "invalid_value")
	asJSON("images is empty", edits, `{"model": "gen-image-2", "prompt": "x", "images": []}`, 400, "image", "missing_required_parameter")

	formBody, formKind := multiform(model, prompt, moviePart)
	calls = append(calls, []call{
		{"no key", "POST", videos, "", formKind, formBody, 401, "", "invalid_api_key"},
		{"unknown key", "POST", videos, "ck_unknown_key", formKind, formBody, 401, "", "invalid_api_key"},
		{"wrong type", "POST", videos, studio, "text/plain", formBody, 400, "", "invalid_value"},
		{"truncated form", "POST", videos, studio, formKind, formBody[:len(formBody)-20], 400, "", "invalid_value"},
		{"PUT", "PUT", videos, studio, formKind, formBody, 405, "", ""},
		{"POST one", "POST", videos + "/" + own, studio, jsonType, "{}", 405, "", ""},
		{"unknown path", "GET", "/v1/images/variations", studio, "", "", 404, "", ""},
		{"remix of a video that is not ready", "POST", videos + "/" + own + "/remix", studio, jsonType, `{"prompt":"x"}`, 409, "", ""},
		{"remix of another account's video", "POST", videos + "/" + own + "/remix", rival, jsonType, `{"prompt":"x"}`, 404, "", ""},
		{"remix of an image", "POST", videos + "/" + imageJob + "/remix", studio, jsonType, `{"prompt":"x"}`, 404, "", ""},
		{"GET remix", "GET", videos + "/" + own + "/remix", studio, "", "", 405, "", ""},
		{"edit without a video", "POST", videos + "/edits", studio, jsonType, `{"prompt":"x"}`, 400, "video", "missing_required_parameter"},
		{"edit of another account's video", "POST", videos + "/edits", rival, jsonType, `{"prompt":"x","video":{"id":"` + own + `"}}`, 404, "", ""},
		{"edit of a path", "POST", videos + "/edits", studio, jsonType, `{"prompt":"x","video":{"id":"../` + own + `"}}`, 404, "", ""},
		{"edit of a long id", "POST", videos + "/edits", studio, jsonType, `{"prompt":"x","video":{"id":"` + strings.Repeat("x", 9000) + `"}}`, 404, "", ""},
		{"edit of an empty id", "POST", videos + "/edits", studio, jsonType, `{"prompt":"x","video":{"id":""}}`, 400, "video", "invalid_value"},
		{"unclean path", "GET", videos + "//" + own, studio, "", "", 404, "", ""},
		{"another account's video", "GET", videos + "/" + own, rival, "", "", 404, "", ""},
		{"another account's content", "GET", videos + "/" + own + "/content", rival, "", "", 404, "", ""},
		{"delete another account's video", "DELETE", videos + "/" + own, rival, "", "", 404, "", ""},
		{"image as a video", "GET", videos + "/" + imageJob, studio, "", "", 404, "", ""},
		{"delete an image as a video", "DELETE", videos + "/" + imageJob, studio, "", "", 404, "", ""},
		{"unknown id", "GET", videos + "/video_123", studio, "", "", 404, "", ""},
		{"id with a path", "GET", videos + "/..%2f..%2fetc", studio, "", "", 404, "", ""},
		{"early content", "GET", videos + "/" + own + "/content", studio, "", "", 409, "", ""},
		{"early thumbnail", "GET", videos + "/" + own + "/content?variant=thumbnail", studio, "", "", 409, "", ""},
		{"unknown variant", "GET", videos + "/" + own + "/content?variant=spritesheet", studio, "", "", 400, "variant", "invalid_value"},
		{"limit 0", "GET", videos + "?limit=0", studio, "", "", 400, "limit", "integer_below_min_value"},
		{"order", "GET", videos + "?order=up", studio, "", "", 400, "order", "invalid_value"},
	}...)
	for _, c := range calls {
		a := w.openAI(c.method, c.path, c.key, c.kind, c.body)
		if a.status != c.status {
			t.Errorf("%s: %d %.300s", c.name, a.status, a.body)
			continue
		}
		if param, code := a.openAIError(t); c.code != "" && code != c.code || param != c.param {
			t.Errorf("%s: param %q, code %q", c.name, param, code)
		}
	}
	if len(calls) < 100 {
		t.Errorf("only %d calls", len(calls))
	}
	eventually(t, "the blobs of rejected calls are deleted", func() bool { return len(w.files()) == before })
	if status := w.openAI("GET", videos+"/"+own, studio, "", "").video(t).Status; status != "queued" {
		t.Errorf("the video is %s", status)
	}
	if ids := w.jobIDs(studio, ""); len(ids) != 2 {
		t.Errorf("the jobs are %q", ids)
	}
}

// Bodies that arrive slowly do not keep others from being read.
func TestOpenAISlowJSONBodiesHoldNoTurns(t *testing.T) {
	w := openAIWorld(t, setup{})
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: await.Max}}
	for range 2 {
		body, send := io.Pipe()
		request, _ := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/images/edits", body)
		request.ContentLength = 1 << 20
		request.Header = http.Header{"Authorization": {"Bearer " + studio}, "Content-Type": {"application/json"}, "Expect": {"100-continue"}}
		go func() {
			if response, err := client.Do(request); err == nil {
				response.Body.Close()
			}
		}()
		defer send.Close()
		if _, err := send.Write([]byte(" ")); err != nil { // sent only after the service has begun to read the body
			t.Fatal(err)
		}
	}
	a := w.openAI("POST", "/v1/images/edits", studio, "application/json", `{"model":"unknown","user":"`+strings.Repeat("x", 1<<20)+`"}`)
	if a.status != http.StatusNotFound {
		t.Errorf("%d %.300s", a.status, a.body)
	}
}

func TestOpenAIScopesApply(t *testing.T) {
	w := openAIWorld(t, setup{})
	mintFor := func(models string) string {
		a := w.request("POST", "/v1/client/tokens", studio, strings.NewReader(`{"allowedModels": [`+models+`]}`), "Content-Type: application/json")
		var token struct{ APIKey string }
		if json.Unmarshal([]byte(a.body), &token) != nil || token.APIKey == "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return token.APIKey
	}
	right, wrong := mintFor(`"gen-latest"`), mintFor(`"gen-2.1"`)
	form := []part{text("model", "gen-2.5"), text("prompt", "x"), upload("input_reference", clip(t))}
	id := w.openAIForm("/v1/videos", right, form...).video(t).ID
	for name, a := range map[string]answer{
		"create with another model's token": w.openAIForm("/v1/videos", wrong, form...),
		"remix with another model's token":  w.openAI("POST", "/v1/videos/"+id+"/remix", wrong, "application/json", `{"prompt":"x"}`),
		"read with another model's token":   w.openAI("GET", "/v1/videos/"+id, wrong, "", ""),
		"list with a token":                 w.openAI("GET", "/v1/videos", right, "", ""),
		"delete with a token":               w.openAI("DELETE", "/v1/videos/"+id, right, "", ""),
	} {
		if a.openAIError(t); a.status != 403 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if status := w.openAI("GET", "/v1/videos/"+id, right, "", "").video(t).Status; status != "queued" {
		t.Error(status)
	}
}

func TestOpenAIImagesReturnsEachImage(t *testing.T) {
	w := openAIWorld(t, setup{})
	w.work(script(copying), blind{})
	photo := smallPNG(t)
	send := func(key, n string) answer {
		body, kind := multiform(text("prompt", "winter"), upload("image[]", photo), upload("image[]", photo), text("n", n),
			text("model", "gen-image-latest"), text("size", "512x512"), text("quality", "high"), text("tags[]", "a"), text("tags[]", "b"))
		return w.openAI("POST", "/v1/images/edits", studio, kind, body, "Idempotency-Key: "+key)
	}
	a := send("1", "3")
	var images struct {
		Created int64
		Format  string `json:"output_format"`
		Data    []struct {
			Base64 []byte `json:"b64_json"`
			URL    string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &images); err != nil || a.status != 200 || len(images.Data) != 3 || images.Format != "png" {
		t.Fatalf("%d %.300s", a.status, a.body)
	}
	for _, one := range images.Data {
		if string(one.Base64) != photo {
			t.Errorf("an image has %d bytes", len(one.Base64))
		}
	}
	ids := strings.Split(a.header.Get("X-Job-Id"), ", ")
	seeds := map[uint32]bool{}
	for _, id := range ids {
		j := w.record(id)
		seeds[j.Seed] = true
		if j.Model != "gen-image-2" || j.Request.Option("resolution") != "480p" || len(j.Request.Inputs) != 2 {
			t.Errorf("%s: %+v", id, j.Request)
		}
	}
	if len(ids) != 3 || len(seeds) != 3 {
		t.Errorf("jobs %q have %d seeds", ids, len(seeds))
	}
	if again := send("1", "3"); again.body != a.body || again.header.Get("Idempotent-Replayed") != "true" || len(w.jobIDs(studio, "")) != 3 {
		t.Errorf("a retry: %d %.300s", again.status, again.body)
	}
	if other := send("1", "2"); other.status != 409 || len(w.jobIDs(studio, "")) != 3 {
		t.Errorf("a retry with another n: %d %.300s", other.status, other.body)
	}

	a = w.openAIForm("/v1/images/edits", studio, text("prompt", "x"), upload("image", photo), text("model", "gen-image-2"), text("output_format", "jpeg"))
	if err := json.Unmarshal([]byte(a.body), &images); err != nil || a.status != 200 || images.Format != "jpeg" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if size, format, err := image.DecodeConfig(bytes.NewReader(images.Data[0].Base64)); err != nil || format != "jpeg" || size.Width != 40 {
		t.Errorf("%s %+v, %v", format, size, err)
	}
	a = w.openAIForm("/v1/images/edits", studio, text("prompt", "x"), upload("image", photo), text("model", "gen-image-2"),
		text("stream", "true"), text("partial_images", "2"), text("n", "2"))
	events := strings.Split(strings.TrimSuffix(a.body, "\n\n"), "\n\n")
	for _, event := range events {
		var done struct {
			Type, Size string
			Base64     []byte          `json:"b64_json"`
			Format     string          `json:"output_format"`
			Usage      *map[string]any `json:"usage"`
		}
		data, named := strings.CutPrefix(event, "event: image_edit.completed\ndata: ")
		if err := json.Unmarshal([]byte(data), &done); err != nil || !named || done.Type != "image_edit.completed" ||
			string(done.Base64) != photo || done.Format != "png" || done.Size == "" || done.Usage == nil {
			t.Errorf("%v %.300s", err, event)
		}
	}
	if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || len(events) != 2 {
		t.Errorf("%d %v, %d events", a.status, a.header, len(events))
	}
	body := `{"model": "gen-image-2", "prompt": "x", "n": 1, "stream": false, "response_format": "url", "images": [{"image_url": "data:image/png;base64,` +
		base64.StdEncoding.EncodeToString([]byte(photo)) + `"}]}`
	a = w.openAI("POST", "/v1/images/edits", studio, "application/json", body)
	if err := json.Unmarshal([]byte(a.body), &images); err != nil || a.status != 200 || len(images.Data) != 1 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	link, found := strings.CutPrefix(images.Data[0].URL, w.url)
	if got := w.get(link, ""); !found || got.body != photo {
		t.Errorf("%s: %d", images.Data[0].URL, got.status)
	}
}

func TestOpenAIVideoFollowsJob(t *testing.T) {
	w := openAIWorld(t, setup{})
	movie := clip(t)
	created := w.openAIForm("/v1/videos", studio, text("prompt", "winter"), upload("input_reference", movie), text("model", "gen-2.5"),
		text("seconds", "4"), text("size", "720x1280")).video(t)
	if created.Status != "queued" || created.Model != "gen-2.5" || created.Prompt != "winter" || created.CreatedAt == 0 {
		t.Errorf("%+v", created)
	}
	portrait := w.openAI("POST", "/v1/videos", studio, "application/json",
		`{"model": "gen-pro-t2v", "prompt": "`+strings.Repeat("x", 1000)+`", "seconds": 8, "size": "480x832"}`).video(t)
	if *portrait.Size != "480x832" || *portrait.Seconds != "5" {
		t.Errorf("%s, %s seconds", *portrait.Size, *portrait.Seconds)
	}
	fails := w.openAIForm("/v1/videos", studio, text("prompt", "fail"), upload("input_reference", movie), text("model", "gen-2.5")).video(t)
	w.work(script(func(ctx context.Context, spec engine.Spec) error {
		if spec.Prompt == "fail" {
			return fmt.Errorf("broken")
		}
		if spec.Data == nil {
			return os.WriteFile(spec.Output, []byte(movie), 0o600)
		}
		return copying(ctx, spec)
	}), blind{})
	show := func(id string) openAIVideo { return w.openAI("GET", "/v1/videos/"+id, studio, "", "").video(t) }
	eventually(t, "all videos end", func() bool {
		return show(created.ID).Status == "completed" && show(portrait.ID).Status == "completed" && show(fails.ID).Status == "failed"
	})
	if v := show(created.ID); v.Progress != 100 || v.Error != nil {
		t.Errorf("%+v", v)
	}
	if v := show(fails.ID); v.Error == nil || v.Error.Code != string(job.EngineError) || v.Error.Message == "" {
		t.Errorf("%+v", v.Error)
	}
	content := "/v1/videos/" + created.ID + "/content"
	if a := w.openAI("GET", content, studio, "", ""); a.body != movie || a.header.Get("Content-Type") != "video/mp4" {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
	if a := w.openAI("GET", content, studio, "", "", "Range: bytes=4-7"); a.status != 206 || a.body != movie[4:8] {
		t.Errorf("%d %q", a.status, a.body)
	}
	if a := w.openAI("GET", content, studio, "", "", "Range: bytes=99999999-"); a.status != 416 {
		t.Errorf("%d %q", a.status, a.body)
	} else {
		a.openAIError(t)
	}
	w.accepted(w.post("gen-image-2", studio, upload("data", smallPNG(t)), text("prompt", "x")))

	list := func(query string) (ids []string, more bool) {
		var page struct {
			Data    []openAIVideo
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		a := w.openAI("GET", "/v1/videos?"+query, studio, "", "")
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for _, v := range page.Data {
			if ids = append(ids, v.ID); len(v.Prompt) > 510 {
				t.Errorf("the list has a prompt of %d bytes", len(v.Prompt))
			}
		}
		if len(ids) > 0 && page.LastID != ids[len(ids)-1] {
			t.Errorf("last_id is %s", page.LastID)
		}
		return ids, page.HasMore
	}
	newest := []string{fails.ID, portrait.ID, created.ID}
	slices.Sort(newest) // ids made in the same millisecond have a random order
	slices.Reverse(newest)
	oldest := slices.Clone(newest)
	slices.Reverse(oldest)
	for _, c := range []struct {
		query string
		want  []string
		more  bool
	}{
		{"", newest, false},
		{"limit=2", newest[:2], true},
		{"limit=3", newest, false},
		{"limit=2&after=" + newest[1], newest[2:], false},
		{"after=" + newest[2], nil, false},
		{"order=asc", oldest, false},
		{"order=asc&limit=1", oldest[:1], true},
		{"order=asc&limit=1&after=" + oldest[0], oldest[1:2], true},
		{"order=asc&limit=1&after=" + oldest[1], oldest[2:], false},
	} {
		if ids, more := list(c.query); !slices.Equal(ids, c.want) || more != c.more {
			t.Errorf("%s: %q, %t", c.query, ids, more)
		}
	}

	a := w.openAI("DELETE", "/v1/videos/"+created.ID, studio, "", "")
	if want := `{"deleted":true,"id":"` + created.ID + `","object":"video.deleted"}`; a.status != 200 || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := w.openAI("GET", "/v1/videos/"+created.ID, studio, "", ""); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestOpenAIRemixEditsResult(t *testing.T) {
	w := openAIWorld(t, setup{})
	movie, other := clip(t), clip(t)+"other"
	w.work(script(func(ctx context.Context, spec engine.Spec) error {
		if spec.Prompt == "first" {
			return os.WriteFile(spec.Output, []byte(other), 0o600)
		}
		return copying(ctx, spec)
	}), blind{})
	completed := func(v openAIVideo) openAIVideo {
		t.Helper()
		eventually(t, "the video is completed", func() bool {
			v = w.openAI("GET", "/v1/videos/"+v.ID, studio, "", "").video(t)
			return v.Status == "completed"
		})
		return v
	}
	first := completed(w.openAIForm("/v1/videos", studio, text("prompt", "first"), upload("input_reference", movie), text("model", "gen-2.5"),
		text("enhance_prompt", "false")).video(t))
	remix := func(key string) answer {
		return w.openAI("POST", "/v1/videos/"+first.ID+"/remix", studio, "application/json", `{"prompt":"second","model":"gen-2.1"}`,
			"Idempotency-Key: "+key)
	}
	made := remix("1").video(t)
	if again := remix("1").video(t); again.ID != made.ID || remix("2").video(t).ID == made.ID {
		t.Errorf("a retry made the video %s, not %s", again.ID, made.ID)
	}
	body, kind := multiform(text("prompt", "second"), text("video[id]", first.ID))
	for name, v := range map[string]openAIVideo{
		"remix":        made,
		"edit as JSON": w.openAI("POST", "/v1/videos/edits", studio, "application/json", `{"prompt":"second","video":{"id":"`+first.ID+`"}}`).video(t),
		"edit as form": w.openAI("POST", "/v1/videos/edits", studio, kind, body).video(t),
	} {
		if v.Model != "gen-2.5" || v.Prompt != "second" || v.RemixedFrom != first.ID || w.record(v.ID).Request.Flag("enhance_prompt") {
			t.Errorf("%s: %+v", name, v)
		}
		completed(v)
		if a := w.openAI("GET", "/v1/videos/"+v.ID+"/content", studio, "", ""); a.body != other {
			t.Errorf("%s: %d, %d bytes", name, a.status, len(a.body))
		}
	}
	if v := w.openAIForm("/v1/videos/edits", studio, text("prompt", "x"), upload("video", movie)).video(t); v.Model != "gen-2.5" || v.RemixedFrom != "" {
		t.Errorf("an uploaded video: %+v", v)
	}
	drawn := completed(w.openAI("POST", "/v1/videos", studio, "application/json", `{"model":"gen-pro-t2v","prompt":"first"}`).video(t))
	for _, c := range []struct {
		param string
		a     answer
	}{
		{"video", w.openAI("POST", "/v1/videos/"+drawn.ID+"/remix", studio, "application/json", `{"prompt":"x"}`)},
		{"video", w.openAIForm("/v1/videos/edits", studio, text("prompt", "x"), upload("video", movie), text("video[id]", first.ID))},
		{"video", w.openAIForm("/v1/videos/edits", studio, text("prompt", "x"), text("video[id]", first.ID), text("video[id]", first.ID))},
		{"prompt", w.openAI("POST", "/v1/videos/"+first.ID+"/remix", studio, "application/json", ``)},
	} {
		if param, _ := c.a.openAIError(t); c.a.status != 400 || param != c.param {
			t.Errorf("%s: %d %s", c.param, c.a.status, c.a.body)
		}
	}
	resultAge, _ := w.jobs.Ages()
	w.later.Add(int64(resultAge))
	if a := remix("3"); a.status != 404 {
		t.Errorf("after the result expired: %d %s", a.status, a.body)
	}
}

func TestOpenAIVideoStartsWithImage(t *testing.T) {
	w := openAIWorld(t, setup{})
	for _, model := range [][]part{nil, {text("model", "gen-pro-i2v")}} {
		form := append(model, text("prompt", "she waves"), upload("input_reference", smallPNG(t)), text("size", "832x480"))
		made := w.openAIForm("/v1/videos", studio, form...).video(t)
		if made.Model != "gen-pro-i2v" || made.Size == nil || *made.Seconds != "5" {
			t.Errorf("%+v", made)
		}
		request := w.record(made.ID).Request
		if input := request.Inputs["data"]; len(request.Inputs) != 1 || !strings.HasPrefix(input.MIME, "image/") || request.Option("resolution") != "480p" {
			t.Errorf("%+v", request)
		}
	}
	video := w.openAIForm("/v1/videos", studio, text("prompt", "x"), upload("input_reference", clip(t)), text("model", "gen-pro-i2v"))
	if param, _ := video.openAIError(t); video.status != 400 || param != "input_reference" {
		t.Errorf("%d %s", video.status, video.body)
	}
}

func TestOpenAIDeleteCancelsVideo(t *testing.T) {
	w := openAIWorld(t, setup{})
	id := w.openAIForm("/v1/videos", studio, text("prompt", "x"), upload("input_reference", clip(t)), text("model", "gen-2.5")).video(t).ID
	if a := w.openAI("DELETE", "/v1/videos/"+id, studio, "", ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.nothingStays()
}

func TestOpenAIImagesCancelsAllAfterFailure(t *testing.T) {
	w := openAIWorld(t, setup{pending: 2})
	a := w.openAIForm("/v1/images/edits", studio, text("prompt", "x"), upload("image", smallPNG(t)), text("model", "gen-image-2"), text("n", "3"))
	if _, code := a.openAIError(t); a.status != 429 || code != "rate_limit_exceeded" || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, id := range w.jobIDs(studio, "") {
		if j := w.record(id); j.Failure == nil || j.Failure.Code != job.Cancelled {
			t.Errorf("%s is %s", id, j.Status)
		}
	}
	w.nothingStays()
}

func TestOpenAIImagesAreGeneratedIfModelCan(t *testing.T) {
	source := strings.Replace(string(priced(t)), "{name: data, type: image, required: true", "{name: data, type: image", 1)
	w := openAIWorld(t, setup{catalog: []byte(source)})
	photo := smallPNG(t)
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		if spec.Data != nil || spec.Prompt != "a cat" {
			return fmt.Errorf("the data is %v and the prompt %q", spec.Data, spec.Prompt)
		}
		return os.WriteFile(spec.Output, []byte(photo), 0o600)
	}), blind{})
	a := w.openAI("POST", "/v1/images/generations", studio, "application/json",
		`{"model": "gen-image-2", "prompt": "a cat", "n": 2, "size": "1024x1024", "style": "vivid", "seed": 7}`)
	if a.status != 200 || strings.Count(a.body, base64.StdEncoding.EncodeToString([]byte(photo))) != 2 {
		t.Errorf("%d %.300s", a.status, a.body)
	}
}

func TestOpenAIImagesUseBudgets(t *testing.T) {
	w := openAIWorld(t, setup{catalog: priced(t)})
	w.stopClock() // midnight might pass during the test
	spent := w.spends(budget.Cost, 2*21_300_000)
	a := w.openAIForm("/v1/images/edits", studio, text("prompt", "x"), upload("image", smallPNG(t)), text("model", "gen-image-2"), text("n", "3"))
	if _, code := a.openAIError(t); a.status != 429 || code != "insufficient_quota" || a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	w.used(spent, 0)
}

// A long JSON body is on the disk while it arrives, so it counts as stored bytes.
func TestLongOpenAIBodiesCountAsStoredBytes(t *testing.T) {
	w := openAIWorld(t, setup{stored: 1 << 20})
	for size, status := range map[int]int{300 << 10: 404, 3 << 20: 429} { // 404: the model is unknown
		a := w.openAI("POST", "/v1/images/edits", studio, "application/json", `{"model":"unknown","user":"`+strings.Repeat("x", size)+`"}`)
		if a.status != status {
			t.Errorf("%d bytes: %d %.300s", size, a.status, a.body)
		}
	}
}
