package api

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/sniff"
)

type memory struct {
	mu    sync.Mutex
	blobs map[string]string
}

func (m *memory) Put(_ context.Context, name string, r io.Reader) (int64, error) {
	bytes, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = string(bytes)
	return int64(len(bytes)), nil
}

func (m *memory) Open(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes, ok := m.blobs[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "The blob does not exist.")
	}
	bytes = bytes[min(offset, int64(len(bytes))):]
	if length >= 0 {
		bytes = bytes[:min(length, int64(len(bytes)))]
	}
	return io.NopCloser(strings.NewReader(bytes)), nil
}

func (m *memory) Head(context.Context, string) (blob.Info, error) {
	return blob.Info{}, errors.New("not used")
}

func (m *memory) Copy(_ context.Context, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes, ok := m.blobs[from]
	if !ok {
		return fault.New(fault.NotFound, "The blob does not exist.")
	}
	m.blobs[to] = bytes
	return nil
}

func (m *memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, name)
	return nil
}

type oneFile struct{ file.Store }

func (oneFile) Get(_ context.Context, _, id string, _ time.Time) (file.File, error) {
	if id != "file_1" {
		return file.File{}, fault.New(fault.NotFound, "File not found.")
	}
	return file.File{ID: id, MIME: "image/gif", Size: int64(len(gif)), Blob: "files/file_1"}, nil
}

const gif = "GIF89a\x01\x00\x01\x00\x00\x00\x00;"

// newFuzzed returns a function that creates a service with a new store on each call.
func newFuzzed(f *testing.F) func() (*service, *memory) {
	known, err := catalog.Default("gen")
	if err != nil {
		f.Fatal(err)
	}
	return func() (*service, *memory) {
		store := &memory{blobs: map[string]string{"files/file_1": gif}}
		files := file.NewService(file.Config{Store: oneFile{}, Blobs: store, IDs: file.NewIDs(time.Now, rand.Reader),
			Now: time.Now})
		return &service{Config: Config{Catalog: known, Blobs: store, MaxUpload: 1000, FileRoutes: FileRoutes{Files: files},
			JobRoutes: JobRoutes{Jobs: job.NewService(job.Config{})}, Logger: slog.New(slog.DiscardHandler)}}, store
	}
}

// checkForm checks that a form leads either to problems located in its fields or body, or to a valid order.
func checkForm(t *testing.T, form *catalog.Form, sub submission) {
	t.Helper()
	o, found := interpret(form, sub)
	for _, p := range found {
		known := len(p.Location) == 1
		if len(p.Location) == 2 {
			_, known = form.Field(p.Location[1])
		}
		if !known || p.Location[0] != "body" || p.Message == "" || p.Type == "" || p.Context == nil {
			t.Errorf("a problem is %+v", p)
		}
	}
	if len(found) > 0 {
		return
	}
	for _, field := range form.Fields {
		_, isInput := o.request.Inputs[field.Name]
		_, isOption := o.request.Options[field.Name]
		if isInput && !field.Type.IsFile() || isOption && field.Type.IsFile() {
			t.Errorf("%s is in the wrong place", field.Name)
		}
		if field.Required && field.Type.IsFile() && !isInput || field.Required && field.Name == promptField &&
			o.request.Prompt == "" {
			t.Errorf("%s is missing", field.Name)
		}
	}
	if len([]rune(o.request.Prompt)) > 4000 {
		t.Error("the prompt is too long")
	}
}

func FuzzMultipart(f *testing.F) {
	part := func(header, content string) string {
		return "--x\r\nContent-Disposition: form-data; " + header + "\r\n\r\n" + content + "\r\n"
	}
	for _, seed := range []string{
		"", "--x--", "--x--\r\n", "--x\r\n\r\n\r\n--x--\r\n",
		part(`name="data"; filename="a"`, gif) + part(`name="prompt"`, "p") + "--x--\r\n",
		part(`name="data"`, "file_1") + part(`name=reference_image.0`, "file_1") + "--x--",
		part(`name="data"`, gif) + part(`name="data"`, gif) + part(`name="seed"`, "9") + part(`name="seed"`, "x") + "--x--",
		part(`name="data"`, gif+strings.Repeat("x", 2000)) + part(`name="self_anchor"`, "\xff") + "--x--",
		part(`name="reference_image"`, "") + part(`name="reference_image.0"`, "y") + "--x--\r\nepilogue",
		"preamble\r\n" + part(`name="unknown"`, "1") + "--x",
		"--x\n\nContent-Disposition\n\n--x--\n",
	} {
		f.Add(seed, 0)
		f.Add(seed, 1)
	}
	fresh := newFuzzed(f)
	f.Fuzz(func(t *testing.T, text string, which int) {
		s, store := fresh()
		models := s.Catalog.Models()
		form := models[uint(which)%uint(len(models))].Form
		in := &inputs{storedBlobs: storedBlobs{service: s}, account: "a", jobID: "job_1", earlier: func() string { return "" }}
		b := &body{source: strings.NewReader(text), left: s.maxBody(), tooLarge: s.errBodyTooLarge()}
		sub, err := readMultipart(b, "x", form.Field, func(p filePart) (*job.Input, *problem, error) {
			return in.take(t.Context(), p)
		})
		if err == nil {
			err = in.copyReferences(t.Context())
		}
		var invalid problems
		switch {
		case errors.As(err, &invalid):
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		default:
			checkForm(t, form, sub)
			for _, s := range sub {
				if s.input == nil {
					continue
				}
				bytes, ok := store.blobs[s.input.Blob]
				if sum := md5.Sum([]byte(bytes)); !ok || int64(len(bytes)) != s.input.Size || s.input.MD5 != "" &&
					s.input.MD5 != hex.EncodeToString(sum[:]) {
					t.Errorf("the input %+v is stored as %q", s.input, bytes)
				}
				if kind, ok := sniff.Media([]byte(bytes)); !ok || !kind.Image && !kind.Video {
					t.Errorf("the stored file is not media: %q", bytes)
				}
			}
		}
		in.discard(t.Context())
		if len(store.blobs) != 1 {
			t.Errorf("there stay %q", slices.Collect(maps.Keys(store.blobs)))
		}
	})
}

func FuzzURLEncoded(f *testing.F) {
	for _, seed := range []string{
		"", "&", "=", "prompt=a", "prompt=a&prompt=b", "prompt=%", "prompt=%zz", "prompt=%ff", "prompt=a;b&seed=1",
		"seed=-1&seed=&resolution=480p&orientation=portrait&enhance_prompt=ON", "data=file_1", "pro%6dpt=x",
		"prompt=" + strings.Repeat("+", 5000),
	} {
		f.Add(seed)
	}
	fresh := newFuzzed(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, _ := fresh()
		for _, m := range s.Catalog.Models() {
			sub, err := readURLEncoded(&body{source: strings.NewReader(text), left: 1 << 30}, m.Form)
			var invalid problems
			switch {
			case errors.As(err, &invalid):
			case err != nil:
				t.Errorf("unexpected error: %v", err)
			default:
				checkForm(t, m.Form, sub)
			}
		}
	})
}

// A part is a reference if its entire content looks like a reference. Otherwise it is a file.
func FuzzReference(f *testing.F) {
	for _, seed := range []string{"", "file_1", "file_2", "file_", "file_1\n", "\nfile_1", "FILE_1", "file_é",
		"file_" + strings.Repeat("a", 65), gif} {
		f.Add(seed)
	}
	fresh := newFuzzed(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, store := fresh()
		in := &inputs{storedBlobs: storedBlobs{service: s}, account: "a", jobID: "job_1", earlier: func() string { return "" }}
		field := &catalog.Field{Name: "data", Type: catalog.ImageFile}
		input, wrong, err := in.take(t.Context(), filePart{field: field, name: "data", content: strings.NewReader(text)})
		if err != nil || (input == nil) == (wrong == nil) && wrong == nil {
			t.Fatalf("%v %v %v", input, wrong, err)
		}
		id, isReference := strings.CutPrefix(text, "file_")
		isReference = isReference && id != "" && len(id) <= 64 && strings.Trim(id,
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		switch {
		case isReference && text == "file_1":
			if err := in.copyReferences(t.Context()); err != nil {
				t.Fatal(err)
			}
			if wrong != nil || store.blobs[input.Blob] != gif {
				t.Errorf("the reference gave %+v %+v", input, wrong)
			}
		case isReference:
			if wrong == nil || wrong.Input != text {
				t.Errorf("an unknown reference gave %+v %+v", input, wrong)
			}
		case wrong == nil && store.blobs[input.Blob] != text:
			t.Errorf("the bytes %q were stored as %q", text, store.blobs[input.Blob])
		case wrong != nil && wrong.Input != nil:
			t.Errorf("bytes are shown: %+v", wrong)
		}
	})
}
