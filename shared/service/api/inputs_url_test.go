package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
	"cutroom/shared/testkit/await"
)

func TestInputsByURL(t *testing.T) {
	video, image := clip(t), picture(t)
	stalled, ended := make(chan bool, 1), make(chan bool, 1)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.mp4":
			fmt.Fprint(w, video)
		case "/a.png":
			fmt.Fprint(w, image)
		case "/text":
			fmt.Fprint(w, "hello")
		case "/reference":
			fmt.Fprint(w, "file_28fA")
		case "/chain":
			fmt.Fprint(w, "http://"+r.Host+"/a.mp4")
		case "/endless":
			fmt.Fprint(w, video)
			for err := error(nil); err == nil; _, err = fmt.Fprint(w, strings.Repeat("\x00", 64<<10)) {
			}
		case "/short":
			w.Header().Set("Content-Length", "1000000")
			fmt.Fprint(w, video)
		case "/slow":
			fmt.Fprint(w, video[:len(video)/2])
			http.NewResponseController(w).Flush()
			stalled <- true
			<-r.Context().Done()
			ended <- true
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer files.Close()
	targets, err := webhook.ParseTargets([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, setup{groups: append(api.AllGroups(), api.OpenAIVideos), maxUpload: 1 << 20, fetch: webhookhttp.NewFetcher(webhookhttp.Config{Targets: targets})})
	data := func(content string) string {
		return "data:video/mp4;base64," + base64.StdEncoding.EncodeToString([]byte(content))
	}
	for _, url := range []string{files.URL + "/a.mp4", strings.ToUpper(files.URL[:4]) + files.URL[4:] + "/a.mp4", data(video)} {
		id := w.accepted(w.post("gen-2.5", studio, text("data", url), text("reference_image", files.URL+"/a.png"), text("prompt", "x")))
		inputs := w.record(id).Request.Inputs
		if inputs["data"].Size != int64(len(video)) || inputs["data"].MIME != "video/mp4" || inputs["reference_image"].MIME != "image/png" {
			t.Errorf("%.60s: %+v", url, inputs)
		}
		w.cancel(id, studio)
	}
	before := len(w.files())
	for url, says := range map[string]string{
		files.URL + "/missing": "status 404", files.URL + "/text": "must be a video", files.URL + "/reference": "must be a video",
		files.URL + "/chain": "must be a video", files.URL + "/a.png": "must be a video", files.URL + "/endless": "larger than 1 MiB",
		files.URL + "/short": "did not arrive", "https://169.254.169.254/": "public internet", "https://localhost/": "public internet",
		"http://example.com/a.mp4": "https://", "https://" + strings.Repeat("a", 3000): "longer than 2048", data("hello"): "must be a video",
		"data:video/mp4,abc": "must be absolute", data(video) + "!!": "invalid base64", data(data(video)): "must be a video",
		"http://127.0.0.1:1/a.mp4": "refused",
	} {
		a := w.post("gen-2.5", studio, text("data", url), text("prompt", "x"))
		if a.status != 422 || !strings.Contains(a.body, says) || !strings.Contains(a.body, `["body","data"]`) {
			t.Errorf("%.60s: %d %s", url, a.status, a.body)
		}
	}
	// A file is not treated as a URL, even if it contains one.
	if a := w.post("gen-2.5", studio, upload("data", files.URL+"/a.mp4"), text("prompt", "x")); a.status != 422 {
		t.Errorf("a file with a URL: %d %s", a.status, a.body)
	}
	for padding, want := range map[int]int{0: 200, 300 << 10: 400} {
		if a := w.openAI("POST", "/v1/videos", studio, "application/json", `{"model":"gen-2.5","prompt":"x","input_reference":{"image_url":"`+
			files.URL+`/a.mp4"},"user":"`+strings.Repeat("x", padding)+`"}`); a.status != want {
			t.Errorf("JSON with %d bytes more: %d %s, want %d", padding, a.status, a.body, want)
		}
	}
	before = len(w.files())
	// If the caller disconnects, the transfer is aborted.
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-stalled
		leave()
	}()
	body, contentType := multiform(text("data", files.URL+"/slow"), text("prompt", "x"))
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/jobs/gen-2.5", strings.NewReader(body))
	request.Header.Set("x-api-key", studio)
	request.Header.Set("Content-Type", contentType)
	if _, err := http.DefaultTransport.RoundTrip(request); err == nil {
		t.Error("the slow file was accepted")
	}
	await.Receive(t, "the end of the transfer", ended)
	eventually(t, "the blobs are deleted", func() bool { return len(w.files()) == before })
}

func TestJobsAcceptJSON(t *testing.T) {
	w := newWorld(t, setup{})
	movie := clip(t)
	post := func(model, body string) answer {
		return w.request(http.MethodPost, "/v1/jobs/"+model, studio, strings.NewReader(body), "Content-Type: application/json")
	}
	data := `"data": "data:video/mp4;base64,` + base64.StdEncoding.EncodeToString([]byte(movie)) + `"`
	j := w.record(w.accepted(post("gen-2.5", `{`+data+`, "prompt": "winter", "seed": 5, "enhance_prompt": false, "other": [1]}`)))
	if j.Request.Prompt != "winter" || j.Request.Inputs["data"].Size != int64(len(movie)) || j.Seed != 5 {
		t.Errorf("%+v", j.Request)
	}
	w.accepted(post("gen-pro-t2v", `{"prompt": "a beach"}`))
	for body, field := range map[string]string{
		`{"prompt": "winter"}`: "data", `{"data": 5}`: "data", `{"data": "a clip"}`: "data", `{` + data + `, "seed": "x"}`: "seed", `[]`: "body", `{` + data + `, "prompt": ["winter"]}`: "prompt",
		`{"data": "x", "reference_image": "a", "reference_image.0": "b"}`: "data",
	} {
		if a := post("gen-2.5", body); a.status != 422 || !strings.Contains(a.body, `"`+field+`"`) {
			t.Errorf("%.40s: %d %s", body, a.status, a.body)
		}
	}
}
