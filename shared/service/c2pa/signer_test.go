package c2pa_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/origin"
	"cutroom/shared/engine"
	c2palib "cutroom/shared/platform/c2pa"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var identity = sync.OnceValues(func() ([]byte, error) { return c2pa.NewIdentity(at, rand.Reader) })

type signing struct {
	*testing.T
	signer  *c2pa.Signer
	anchors string
}

func newSigning(t *testing.T, generative bool) signing {
	t.Helper()
	text, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	who, err := c2pa.ParseIdentity(text, text, at, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := c2pa.Anchors(text)
	if err != nil || strings.Contains(anchors, "KEY") {
		t.Fatalf("the anchors: %v, %s", err, anchors)
	}
	path := filepath.Join(t.TempDir(), "anchors.pem")
	if err := os.WriteFile(path, []byte(anchors), 0o600); err != nil {
		t.Fatal(err)
	}
	return signing{t, c2pa.New(c2pa.Config{
		Library: c2patest.Library(t), Identity: who, Generative: generative, Version: "v1.2.3",
		Now: func() time.Time { return at }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}), path}
}

func (s signing) sign(spec engine.Spec, mime string) (string, job.Credentials) {
	s.Helper()
	path := filepath.Join(s.TempDir(), "signed")
	summary, err := s.signer.Sign(s.Context(), spec, engine.Outcome{Engine: "an engine"}, mime, path)
	if err != nil {
		s.Fatal(err)
	}
	return path, summary
}

// inspect reads a file as the command-line tool does.
func (s signing) inspect(path string, trusting bool) (origin.Report, error) {
	s.Helper()
	file, err := os.Open(path)
	if err != nil {
		s.Fatal(err)
	}
	defer file.Close()
	anchors := ""
	if trusting {
		text, err := os.ReadFile(s.anchors)
		if err != nil {
			s.Fatal(err)
		}
		anchors = string(text)
	}
	return c2pa.Inspect(s.Context(), c2patest.Library(s), file, anchors)
}

func (s signing) file(name string, content []byte) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func input(path, mime string) *engine.Input {
	return &engine.Input{Path: path, MIME: mime, Info: media.Info{}}
}

// The credentials name the signer, engine and input, and nothing private. The C2PA library verifies them.
func TestEditedClipHasCredentials(t *testing.T) {
	t.Parallel()
	s := newSigning(t, true)
	data := mediatest.Video{Name: "private-name.mp4", Seconds: 1}.Make(t)
	reference := mediatest.Image{}.Make(t)
	spec := engine.Spec{
		Job: "job_1", Model: "gen-2.5", Prompt: "a private prompt", Data: input(data, "video/mp4"),
		Reference: input(reference, "image/png"), Output: mediatest.Video{Seconds: 1}.Make(t),
	}
	path, summary := s.sign(spec, "video/mp4")
	if want := (job.Credentials{SourceType: "compositeWithTrainedAlgorithmicMedia", SignedBy: "Cutroom", SignedAt: at}); summary != want {
		t.Errorf("it reports %+v, want %+v", summary, want)
	}
	if report := c2patest.Read(t, path, "video/mp4", s.anchors); report.State != "Trusted" {
		t.Errorf("the Python package reports %s", report.State)
	}
	report, err := s.inspect(path, false)
	if err != nil || report.State != origin.Valid || report.Generator != "Cutroom v1.2.3" || !report.ByModel() {
		t.Fatalf("%+v, %v", report, err)
	}
	want := origin.Action{
		Action: "c2pa.edited", When: "2026-11-20T12:00:00Z", SourceType: "compositeWithTrainedAlgorithmicMedia",
		Agent: "an engine", Model: "gen-2.5",
	}
	if len(report.Actions) != 2 || report.Actions[0].Action != "c2pa.opened" || report.Actions[1] != want {
		t.Errorf("the actions are %+v", report.Actions)
	}
	if len(report.Inputs) != 2 || report.Inputs[0].Relationship != "parentOf" || len(report.Inputs[0].SHA256) != 64 ||
		report.Inputs[1].Relationship != "inputTo" || report.Inputs[0].SHA256 == report.Inputs[1].SHA256 {
		t.Errorf("the inputs are %+v", report.Inputs)
	}
	signed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"private", "job_1", t.TempDir(), "PRIVATE KEY"} {
		if bytes.Contains(signed, []byte(private)) {
			t.Errorf("%q is in the file", private)
		}
	}

	spec.Data, spec.Reference = input(path, "video/mp4"), nil
	again, _ := s.sign(spec, "video/mp4")
	if report, err = s.inspect(again, true); err != nil || report.State != origin.Trusted {
		t.Fatalf("%+v, %v", report, err)
	}
	if len(report.Inputs) != 1 || report.Inputs[0].Record == nil || len(report.Inputs[0].Record.Inputs) != 2 ||
		report.Inputs[0].Problems != nil {
		t.Errorf("the history is %+v", report.Inputs)
	}

	// A changed byte is detected, even if the file is then used as an input.
	at := bytes.Index(signed, []byte("mdat"))
	signed[at+20]++
	tampered := s.file("tampered.mp4", signed)
	report, err = s.inspect(tampered, true)
	if err != nil || report.State != origin.Invalid || !strings.Contains(strings.Join(report.Problems, " "), "assertion.bmffHash.mismatch") {
		t.Errorf("report for a changed file: %+v, %v", report, err)
	}
	spec.Data = input(tampered, "video/mp4")
	again, _ = s.sign(spec, "video/mp4")
	if report, err = s.inspect(again, true); err != nil || report.State != origin.Trusted || len(report.Inputs) != 1 ||
		len(report.Inputs[0].Problems) != 1 || !strings.HasPrefix(report.Inputs[0].Problems[0], "assertion.bmffHash.mismatch: ") {
		t.Errorf("report for a changed input: %+v, %v", report, err)
	}
}

func TestResultsWithoutModelAreNotGenerative(t *testing.T) {
	t.Parallel()
	s := newSigning(t, true)
	spec, path := engine.Spec{Model: "gen", Output: mediatest.Image{}.Make(t)}, filepath.Join(t.TempDir(), "signed")
	summary, err := s.signer.Sign(t.Context(), spec, engine.Outcome{Untrained: true}, "image/png", path)
	if err != nil || summary.SourceType != "algorithmicMedia" {
		t.Errorf("%+v, %v", summary, err)
	}
}

func TestEveryFormatIsSigned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mime       string
		original   string
		generative bool
		want       string
	}{
		{"image/png", mediatest.Image{}.Make(t), true, "trainedAlgorithmicMedia"},
		{"image/jpeg", mediatest.Image{Name: "picture.jpg"}.Make(t), true, "trainedAlgorithmicMedia"},
		{"video/mp4", mediatest.Video{Seconds: 1}.Make(t), false, "algorithmicMedia"},
	} {
		s := newSigning(t, c.generative)
		if _, err := s.inspect(c.original, false); !errors.Is(err, c2palib.ErrNone) {
			t.Errorf("%s without credentials: %v", c.mime, err)
		}
		path, summary := s.sign(engine.Spec{Model: "gen", Output: c.original}, c.mime)
		report, err := s.inspect(path, true)
		if err != nil || report.State != origin.Trusted || summary.SourceType != c.want || report.ByModel() != c.generative ||
			len(report.Actions) != 1 || report.Actions[0].Action != "c2pa.created" || report.Actions[0].SourceType != c.want {
			t.Errorf("%s: %+v, %+v, %v", c.mime, summary, report, err)
		}
	}
}

// A malicious input neither makes the result fail nor stops this process.
func TestHostileInputLosesOnlyItsHistory(t *testing.T) {
	t.Parallel()
	s := newSigning(t, true)
	output := mediatest.Image{}.Make(t)
	first, _ := s.sign(engine.Spec{Model: "gen", Output: output}, "image/png")
	signed, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	inputs := map[string][]byte{"video/x-matroska": []byte("\x1a\x45\xdf\xa3 not much"), "image/png": signed[:len(signed)/3]}
	for mime, content := range inputs {
		spec := engine.Spec{Model: "gen", Kind: catalog.Image, Output: output, Data: input(s.file("hostile", content), mime)}
		path, _ := s.sign(spec, "image/png")
		if report, err := s.inspect(path, true); err != nil || report.State != origin.Trusted || len(report.Inputs) != 1 {
			t.Errorf("of %s: %+v, %v", mime, report, err)
		}
	}
	for range 24 {
		mutated := mediatest.Mutate(random, [][]byte{signed})
		path := s.file("mutated.png", mutated)
		if report, err := s.inspect(path, true); err == nil && report.State == origin.Trusted && !bytes.Equal(mutated, signed) {
			t.Errorf("a changed file is %s", report.State)
		}
	}
	spec := engine.Spec{
		Model: "gen", Kind: catalog.Image, Output: output,
		Data: input(s.file("mutated.png", append(signed[:200:200], 0xff)), "image/png"),
	}
	s.sign(spec, "image/png")
}

// This input keeps the library busy for too long. Other results must not be delayed.
func TestSlowInputLosesOnlyItsHistory(t *testing.T) {
	t.Parallel()
	text, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	who, err := c2pa.ParseIdentity(text, text, at, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := newSigning(t, true)
	s.signer = c2pa.New(c2pa.Config{
		Library: c2patest.Library(t), Identity: who, Generative: true, Version: "v1.2.3",
		Now: func() time.Time { return at }, Logger: slog.New(slog.NewTextHandler(&log, nil)), InputTime: time.Second,
	})
	output := mediatest.Image{}.Make(t)
	picture, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	// A PNG ends with a 12-byte chunk. Other chunks may be empty.
	empty := binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x00teXt"), crc32.ChecksumIEEE([]byte("teXt")))
	end := len(picture) - 12
	slow := slices.Concat(picture[:end], bytes.Repeat(empty, 500_000), picture[end:])
	path, _ := s.sign(engine.Spec{
		Model: "gen", Kind: catalog.Image, Output: output, Data: input(s.file("slow.png", slow), "image/png"),
	}, "image/png")
	if !strings.Contains(log.String(), "omitting the credentials of an input") {
		t.Errorf("got the log %q", log.String())
	}
	report, err := s.inspect(path, true)
	if err != nil || report.State != origin.Trusted || len(report.Inputs) != 1 || report.Inputs[0].SHA256 == "" {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestRemoteCredentialsAreNotFetched(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer server.Close()
	picture, err := os.ReadFile(mediatest.Image{}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("iTXtXML:com.adobe.xmp\x00\x00\x00\x00\x00" + `<x:xmpmeta xmlns:x="adobe:ns:meta/">` +
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" ` +
		`xmlns:dcterms="http://purl.org/dc/terms/" dcterms:provenance="` + server.URL + `"/></rdf:RDF></x:xmpmeta>`)
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(text)-4)), text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(text))
	const head = 8 + 25 // the signature and the first chunk
	s := newSigning(t, true)
	path := s.file("elsewhere.png", slices.Concat(picture[:head], chunk, picture[head:]))
	if _, err := s.inspect(path, false); !errors.Is(err, c2palib.ErrElsewhere) {
		t.Errorf("got %v", err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := c2pa.Reader{Library: c2patest.Library(t), Time: await.Max, Logger: slog.New(slog.DiscardHandler)}
	report, err := reader.Verify(t.Context(), file)
	if err != nil || report.State != origin.Unreadable || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "is not contacted") {
		t.Errorf("%+v, %v", report, err)
	}
	s.sign(engine.Spec{
		Model: "gen", Kind: catalog.Image, Output: mediatest.Image{}.Make(t), Data: input(path, "image/png"),
	}, "image/png")
	if asked.Load() {
		t.Error("the server was contacted")
	}
}

// The helper process ends as well.
func TestCancelledSigningLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := newSigning(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "signed")
	_, err := s.signer.Sign(ctx, engine.Spec{Model: "gen", Output: mediatest.Image{}.Make(t)},
		engine.Outcome{}, "image/png", path)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}

// An engine's server shares the folder of the signed file, so it could place a link there.
func TestSigningFollowsNoLink(t *testing.T) {
	t.Parallel()
	s := newSigning(t, true)
	victim := s.file("victim", []byte("kept"))
	path := filepath.Join(t.TempDir(), "signed")
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	_, err := s.signer.Sign(t.Context(), engine.Spec{Model: "gen", Output: mediatest.Image{}.Make(t)},
		engine.Outcome{}, "image/png", path)
	if content, _ := os.ReadFile(victim); err == nil || string(content) != "kept" {
		t.Errorf("the link's target has %d bytes: %v", len(content), err)
	}
}

func TestReportJSONIsStable(t *testing.T) {
	t.Parallel()
	s := newSigning(t, true)
	path, _ := s.sign(engine.Spec{Model: "gen", Output: mediatest.Image{}.Make(t)}, "image/png")
	report, err := s.inspect(path, true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	want := `{"state":"trusted","signed_by":"Cutroom","common_name":"Self-made key for Content Credentials",` +
		`"generator":"Cutroom v1.2.3","actions":[{"action":"c2pa.created","when":"2026-11-20T12:00:00Z",` +
		`"source_type":"trainedAlgorithmicMedia","agent":"an engine","model":"gen"}]}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}
