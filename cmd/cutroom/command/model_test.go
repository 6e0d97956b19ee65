package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaultModelComesFromTheCatalog(t *testing.T) {
	folder := t.TempDir()
	own := filepath.Join(folder, "catalog.yaml")
	source, err := os.ReadFile("../../../shared/domain/catalog/catalog.yaml")
	if err == nil {
		err = os.WriteFile(own, []byte(strings.ReplaceAll(string(source), "$family-latest", "studio-newest")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	clip, picture := filepath.Join(folder, "clip.mp4"), filepath.Join(folder, "picture.png")
	for _, path := range []string{clip, picture} {
		if err := os.WriteFile(path, []byte("no media"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		catalog, family string
		arguments       []string
		want            string
	}{
		"a video":         {"", "", []string{"edit", clip, "-p", "x"}, "gen-latest"},
		"another family":  {"", "acme", []string{"edit", clip, "-p", "x"}, "acme-latest"},
		"another catalog": {own, "", []string{"edit", clip, "-p", "x"}, "studio-newest"},
		"an image":        {own, "", []string{"image", picture, "-p", "x"}, "gen-image-latest"},
		"a text":          {own, "", []string{"t2v", "x"}, "gen-pro-t2v"},
		"a named model":   {own, "", []string{"edit", clip, "-p", "x", "-m", "mine"}, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked struct{ Model string }
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models/resolve" {
					_ = json.NewDecoder(r.Body).Decode(&asked)
				}
				w.WriteHeader(http.StatusNotFound)
			}))
			defer server.Close()
			settings := map[string]string{"CUTROOM_CATALOG": c.catalog, "CUTROOM_FAMILY": c.family}
			if seen, err := runWith(t, settings, server.URL, c.arguments...); err == nil {
				t.Errorf("it worked: %s", seen)
			}
			if asked.Model != c.want {
				t.Errorf("requested %q, want %q", asked.Model, c.want)
			}
		})
	}
}
