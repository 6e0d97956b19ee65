package gateway_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
)

const audioRows = `
  - {id: ear, routes: [transcriptions], price: {input: 100}, upstreams: [{name: first, url: URL0, model: weights}]}
  - {id: voice, routes: [speech], context_length: 40, price: {input: 15}, upstreams: [{name: first, url: URL0, model: weights}]}
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights}]}
`

type formPart struct{ head, content string }

func field(name, value string) formPart {
	return formPart{`Content-Disposition: form-data; name="` + name + `"`, value}
}

func audioFile(content string) formPart {
	return formPart{"Content-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\nContent-Type: audio/mpeg", content}
}

func audioForm(parts ...formPart) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--xyz\r\n" + p.head + "\r\n\r\n" + p.content + "\r\n")
	}
	return b.String() + "--xyz--\r\n"
}

func (w *world) transcribe(parts ...formPart) answer {
	w.t.Helper()
	return w.post("/v1/audio/transcriptions", audioForm(parts...), "Content-Type: multipart/form-data; boundary=xyz")
}

// wav returns silence of the given length.
func wav(seconds int) string {
	header := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	header = binary.LittleEndian.AppendUint32(header, 8000)
	header = binary.LittleEndian.AppendUint32(header, 16000)
	header = append(header, "\x02\x00\x10\x00LIST\x03\x00\x00\x00abc\x00data\xff\xff\xff\xff"...)
	return string(header) + strings.Repeat("\x00", 16000*seconds-1)
}

func typedAnswer(kind, body string) func(*call) {
	return func(c *call) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", kind, len(body), body)
	}
}

func TestTranscriptionsAreForwardedAndMetered(t *testing.T) {
	mp3 := strings.Repeat("\xff\x00\r\n--xy", 1500) // 12,000 bytes
	// The format's identifier says MP3.
	compressed := wav(1)[:20] + "\xfe\xff" + wav(1)[22:44] + "\x55\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71" + mp3
	deltas := []string{`{"type":"transcript.text.delta","delta":"hello"}`,
		`{"type":"transcript.text.done","text":"hello","usage":{"type":"tokens","input_tokens":45,"input_token_details":{"audio_tokens":45,"text_tokens":0}}}`}
	chunks := []string{`{"object":"transcription.chunk","model":"weights","choices":[{"delta":{"content":"hello"}}]}`}
	for _, c := range []struct {
		name, audio     string
		answer          func(*call)
		want, kind      string
		seconds, guided int64
	}{
		{"a duration in the usage", mp3, always(200, `{"text":"hello","usage":{"type":"duration","seconds":8.2}}`),
			`{"text":"hello","usage":{"type":"duration","seconds":8.2}}`, "application/json", 9, 0},
		{"a duration", mp3, always(200, `{"text":"hello","duration":"7"}`), `{"text":"hello","duration":"7"}`, "application/json", 7, 0},
		{"tokens", mp3, always(200, `{"text":"","usage":{"input_token_details":{"audio_tokens":41}}}`),
			`{"text":"","usage":{"input_token_details":{"audio_tokens":41}}}`, "application/json", 5, 0},
		{"an impossible duration", mp3, always(200, `{"text":"hello","duration":1e300}`), `{"text":"hello","duration":1e300}`, "application/json", 3, 1},
		{"a negative duration", mp3, always(200, `{"text":"hello","duration":-5}`), `{"text":"hello","duration":-5}`, "application/json", 3, 1},
		{"text", mp3, typedAnswer("text/plain; charset=utf-8", "hello"), "hello", "text/plain; charset=utf-8", 3, 1},
		{"subtitles of a WAV file", wav(2), typedAnswer("text/vtt", "WEBVTT"), "WEBVTT", "text/vtt; charset=utf-8", 2, 1},
		{"a compressed WAV file", compressed, typedAnswer("text/vtt", "WEBVTT"), "WEBVTT", "text/vtt; charset=utf-8", 3, 1},
		{"an MP4 file with a WAV header's fields", "\x00\x00\x00\x20ftyp" + wav(2)[8:], typedAnswer("text/vtt", "WEBVTT"), "WEBVTT", "text/vtt; charset=utf-8", 8, 1},
		{"a WAV file with 48 kHz in stereo", wav(8)[:22] + "\x02\x00\x80\xbb\x00\x00\x00\xee\x02\x00\x04\x00" + wav(8)[34:], typedAnswer("text/vtt", "WEBVTT"),
			"WEBVTT", "text/vtt; charset=utf-8", 4, 1},
		{"a page", wav(2), typedAnswer("text/html", "<script>"), "<script>", "application/octet-stream", 2, 1},
		{"a stream", mp3, events(append(deltas, done)...), typed(deltas...) + eventStream(done), "text/event-stream", 5, 0},
		{"a stream without an end marker", mp3, writing(typed(deltas...)), typed(deltas...), "text/event-stream", 5, 0},
		{"a stream of chunks", mp3, events(append(chunks, done)...), strings.ReplaceAll(eventStream(append(chunks, done)...), "weights", "ear"),
			"text/event-stream", 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUpstream(t, c.answer)
			rows := strings.Replace(audioRows, "[{", "[{name: busy, url: URL1, model: weights}, {", 1)
			w := newWorld(t, setup{upstreams: []*modelServer{u, newUpstream(t, always(503, `{}`))}, rows: rows, random: func() float64 { return 0 }})
			a := w.transcribe(audioFile(c.audio), field("model", "ear"), field("language", "en"), field("stream", "true"),
				field("timestamp_granularities[]", "word"), field("timestamp_granularities[]", "segment"))
			if a.status != 200 || a.body != c.want || a.header.Get("Content-Type") != c.kind {
				t.Fatalf("%d %q %.300s %v", a.status, a.header.Get("Content-Type"), a.body, a.err)
			}
			got := u.seen()[0]
			kind, parameters, err := mime.ParseMediaType(got.header.Get("Content-Type"))
			if err != nil || kind != "multipart/form-data" || got.path != "/v1/audio/transcriptions" {
				t.Fatalf("%s %v", got.path, got.header)
			}
			sent, err := multipart.NewReader(strings.NewReader(got.body), parameters["boundary"]).ReadForm(1 << 20)
			must(t, err)
			file, err := sent.File["file"][0].Open()
			must(t, err)
			defer file.Close()
			content, err := io.ReadAll(file)
			must(t, err)
			if string(content) != c.audio || sent.File["file"][0].Filename != "audio.mp3" || sent.File["file"][0].Header.Get("Content-Type") != "audio/mpeg" ||
				sent.Value["model"][0] != "weights" || sent.Value["language"][0] != "en" || len(sent.Value["timestamp_granularities[]"]) != 2 {
				t.Errorf("the server got %v and %d bytes", sent, len(content))
			}
			want := usage.Counts{Requests: 1, AudioSeconds: c.seconds, Estimated: c.guided, Cost: c.seconds * 100_000}
			if got := w.recorded(1)[0]; got.Counts != want || got.Model != "ear" {
				t.Errorf("recorded %+v, want %+v", got.Counts, want)
			}
			used := a.header.Get("X-Tokens-Used") + a.trailer.Get("X-Tokens-Used")
			if used != fmt.Sprint(10*c.seconds) {
				t.Errorf("%s tokens, %v, %v", used, a.header, a.trailer)
			}
		})
	}
}

// Servers read forms differently, so the gateway sends only forms that cannot be misread.
func TestTranscriptionFormsCannotSmuggleFields(t *testing.T) {
	u := newUpstream(t, always(200, `{"text":"x"}`))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: strings.Replace(audioRows, "[transcriptions],", "[transcriptions], fields: [hotwords],", 1)})
	audio, model := audioFile("x"), field("model", "ear")
	disposition := func(rest string) formPart { return formPart{"Content-Disposition: form-data" + rest, "other"} }
	for name, c := range map[string]struct {
		body, param string
	}{
		"two models":          {audioForm(audio, model, field("model", "small")), "model"},
		"two files":           {audioForm(audio, audio, model), "file"},
		"no model":            {audioForm(audio), "model"},
		"no file":             {audioForm(model), "file"},
		"a list of models":    {audioForm(audio, model, field("model[]", "small")), ""},
		"an indexed model":    {audioForm(audio, model, field("model[0]", "small")), ""},
		"another case":        {audioForm(audio, model, field("Model", "small")), ""},
		"an encoded name":     {audioForm(audio, model, disposition("; name*=utf-8''model")), "model"},
		"two names":           {audioForm(audio, model, disposition(`; name="a"; name="model"`)), ""},
		"a name with a quote": {audioForm(audio, model, disposition(`; name="a\"; name=\"model"`)), ""},
		"a name with a break": {audioForm(audio, model, disposition(";\r\n name=\"model\"")), "model"},
		"no name":             {audioForm(audio, model, disposition("")), ""},
		"no header":           {"--xyz\r\n\r\nx\r\n" + audioForm(audio, model), ""},
		"a long header":       {audioForm(audio, model, disposition(`; name="a"; x="`+strings.Repeat("x", 5000)+`"`)), ""},
		"many parameters":     {audioForm(audio, model, disposition(strings.Repeat(";a=b", 200)+`; name="a"`)), ""},
		"many parts":          {audioForm(append([]formPart{audio, model}, make([]formPart, 200)...)...), ""},
		"an unknown field":    {audioForm(audio, model, field("vad_filter", "1")), "vad_filter"},
		"a preamble":          {"x\r\n" + audioForm(audio, model), ""},
		"line feeds":          {strings.ReplaceAll(audioForm(audio, model), "\r\n", "\n"), ""},
		"another boundary":    {strings.ReplaceAll(audioForm(audio, model), "xyz", "abc"), ""},
		"an unfinished form":  {audioForm(audio, model)[:40], ""},
		"nothing":             {"", ""},
		"JSON":                {`{"model":"ear","file":"x"}`, ""},
	} {
		a := w.post("/v1/audio/transcriptions", c.body, "Content-Type: multipart/form-data; boundary=xyz")
		if a.status != 400 || c.param != "" && !strings.Contains(a.body, `"param":"`+c.param+`"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, kind := range []string{"application/json", "multipart/form-data", "multipart/form-data; boundary", "text/plain; boundary=xyz", ";;;"} {
		if a := w.post("/v1/audio/transcriptions", audioForm(audio, model), "Content-Type: "+kind); a.status != 400 {
			t.Errorf("%s: %d %s", kind, a.status, a.body)
		}
	}
	for name, want := range map[string]int{"nothing": 404, "small": 404, "voice": 404} {
		if a := w.transcribe(audio, field("model", name)); a.status != want || !strings.Contains(a.body, "model_not_found") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := len(u.seen()); n > 0 {
		t.Fatalf("the server got %d calls: %+v", n, u.seen())
	}
	evil := formPart{"Content-Disposition: form-data; name=\"file\"; filename=\"../a\\\"; name=\\\"model.mp3\"\r\nContent-Type: a/b\r\nX-Evil: 1", "x\r\n--xy2"}
	if a := w.transcribe(evil, model, field("hotwords", "a")); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := u.seen()[0].body; strings.Contains(got, "X-Evil") || strings.Count(got, `; name="`) != 3 || !strings.Contains(got, "x\r\n--xy2\r\n--") {
		t.Errorf("the server got %q", got)
	}
	w.post("/v1/audio/transcriptions", audioForm(audio, model)+"--xyz\r\nepilogue", "Content-Type: multipart/form-data; boundary=xyz")
	if got := u.seen()[1].body; strings.Contains(got, "epilogue") {
		t.Errorf("the server got %q", got)
	}
}

func TestSpeechIsForwardedWhileItArrives(t *testing.T) {
	next := make(chan bool)
	u := newUpstream(t, func(c *call) {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n")
		c.write("one\x00")
		<-next
		c.write("two\xff")
		c.end()
	})
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: audioRows, keepAlive: time.Millisecond})
	request := w.request(t.Context(), "POST", "/v1/audio/speech", studio,
		strings.NewReader(`{"model": "voice", "input": "Grüße \u00fc", "voice": "alloy", "response_format": "mp3"}`))
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	first := make([]byte, 4)
	_, err = io.ReadFull(response.Body, first)
	must(t, err)
	close(next)
	rest, err := io.ReadAll(response.Body)
	must(t, err)
	if string(first)+string(rest) != "one\x00two\xff" || response.Header.Get("Content-Type") != "audio/mpeg" || response.Trailer.Get("X-Tokens-Used") != "7" {
		t.Errorf("%q %q %v %v", first, rest, response.Header, response.Trailer)
	}
	if got := u.seen()[0]; got.body != `{"model": "weights", "input": "Grüße \u00fc", "voice": "alloy", "response_format": "mp3"}` || got.path != "/v1/audio/speech" {
		t.Errorf("%s %s", got.path, got.body)
	}
	if got := w.recorded(1)[0].Counts; got != (usage.Counts{Requests: 1, Characters: 7, Cost: 105_000}) {
		t.Errorf("recorded %+v", got)
	}
	if a := w.get("/v1/usage", studio); !strings.Contains(a.body, `"characters":7`) {
		t.Errorf("%s", a.body)
	}
}

func TestSpeechFailuresAreVisible(t *testing.T) {
	const said = `{"model":"voice","input":"hello","voice":"alloy"}`
	chunked := "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name          string
		answer        func(*call)
		status        int
		body, message string
		cut           bool
		characters    int64
	}{
		{"a break", func(c *call) { fmt.Fprint(c, chunked); c.write("one"); c.reset() }, 200, "one", "", true, 5},
		{"an endless answer", func(c *call) {
			fmt.Fprint(c, chunked)
			for piece := string(make([]byte, 1<<20)); c.write(piece) == nil; {
			}
		}, 200, "", "\x00", true, 5},
		{"no audio", typedAnswer("audio/mpeg", ""), 502, "", "upstream_error", false, 0},
		{"an error", typedAnswer("application/json", `{"error":{"message":"bad voice","code":400}}`), 400, "", "bad voice", false, 0},
		{"JSON", typedAnswer("application/json", `{}`), 502, "", "upstream_error", false, 0},
		{"a refusal", always(422, `{"detail":"unknown voice"}`), 422, "", "unknown voice", false, 0},
		{"a page", typedAnswer("text/html", "<script>"), 200, "<script>", "", false, 5},
		{"an error in a stream", events(`{"type":"speech.audio.delta","audio":"AAAA"}`, `{"error":{"message":"x"}}`), 200, "", `data: {"error":`, false, 5},
		{"a stream", events(`{"type":"speech.audio.delta","audio":"AAAA"}`), 200, "", "AAAA", false, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, c.answer)}, rows: audioRows})
			a := w.post("/v1/audio/speech", said)
			if a.status != c.status || (a.err != nil) != c.cut || c.body != "" && a.body != c.body || !strings.Contains(a.body, c.message) ||
				strings.Contains(a.header.Get("Content-Type"), "html") {
				t.Errorf("%d %.300q %v %v", a.status, a.body, a.err, a.header)
			}
			if c.characters == 0 {
				w.recorded(0)
			} else if got := w.recorded(1)[0].Counts; got.Characters != c.characters {
				t.Errorf("recorded %+v", got)
			}
		})
	}
	w := newWorld(t, setup{rows: audioRows})
	for body, want := range map[string]string{
		`{"model":"voice"}`:                                           "input is missing",
		`{"model":"voice","input":""}`:                                "expected text",
		`{"model":"voice","input":["a"]}`:                             "a string",
		`{"model":"voice","input":7}`:                                 "a string",
		`{"model":"voice","input":"` + strings.Repeat("ü", 41) + `"}`: "context_length_exceeded",
		`{"model":"voice","input":"a","instructions":"` + strings.Repeat("ü", 40) + `"}`: "context_length_exceeded",
		`{"model":"voice","input":"a","INPUT":"b"}`:                                      "INPUT",
		`{"model":"voice","input":"a","n":2}`:                                            "does not support this field",
		`{"model":"small","input":"a"}`:                                                  "model_not_found",
		`{"model":"ear","input":"a"}`:                                                    "model_not_found",
	} {
		if a := w.post("/v1/audio/speech", body); a.status < 400 || a.status > 404 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

func TestAudioUsesBudgetsAndScopes(t *testing.T) {
	store, machine := openBudgets(t, 400_000) // four seconds, or 26 characters
	k, _ := keep(t, store, machine, standing())
	u := newUpstream(t, always(200, `{"text":"x","duration":3}`))
	w := newWorld(t, setup{rows: audioRows, upstreams: []*modelServer{u}, budgets: k})
	form5 := audioForm(audioFile(strings.Repeat("x", 4600)), field("model", "ear"))
	speech := `{"model":"voice","input":"` + strings.Repeat("x", 27) + `"}`
	ask := func(path, key, body string) answer {
		return w.do(w.request(t.Context(), "POST", path, key, strings.NewReader(body), "Content-Type: multipart/form-data; boundary=xyz"))
	}
	for path, body := range map[string]string{"/v1/audio/transcriptions": form5, "/v1/audio/speech": speech} {
		if a := ask(path, studio, body); a.status != 429 || !strings.Contains(a.body, "insufficient_quota") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		token := w.token(credential.Scope{Models: []string{"small"}})
		if a := ask(path, token, body); a.status != http.StatusForbidden || !strings.Contains(a.body, "model_not_allowed") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if len(u.seen()) > 0 {
		t.Errorf("the server got %d calls", len(u.seen()))
	}
	if a := w.transcribe(audioFile(strings.Repeat("x", 3000)), field("model", "ear")); a.status != 200 || a.header.Get("X-Cost") != "0.0003 USD" {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	if w.spent() != 300_000 {
		t.Errorf("spent %d", w.spent())
	}
	if a := w.post("/v1/batches", `{"input_file_id":"file_1","endpoint":"/v1/audio/speech","completion_window":"24h"}`); a.status == 200 {
		t.Errorf("a batch: %d %s", a.status, a.body)
	}
}
