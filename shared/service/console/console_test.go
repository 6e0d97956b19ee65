package console_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/console"
	"cutroom/shared/testkit/alloctest"
)

const (
	// largest is the maximum compressed size, in bytes, of the page, its files and the picture next to the login form
	// together.
	largest = 113_000
	// largestLater limits the compressed size of other pages' files, without the samples and the video library.
	largestLater = 24_000
)

func newConsole(t *testing.T) http.Handler {
	t.Helper()
	known, err := catalog.Default("acme")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := console.New(console.Config{
		Settings:      console.Settings{BaseURL: "..", MaxUpload: 512 << 20, Models: console.Models(known)},
		InferencePort: 8081,
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages.Beside(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
}

func get(handler http.Handler, target string, header ...string) *http.Response {
	request := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer.Result()
}

func TestConsoleServesItsFiles(t *testing.T) {
	handler := newConsole(t)
	for _, test := range []struct {
		target, accept string
		status         int
		location, kind string
	}{
		{"/", "text/html,*/*", 307, "console/", ""},
		{"/", "application/json", http.StatusTeapot, "", ""},
		{"/console", "*/*", 307, "console/", ""},
		{"/console/", "text/html", 200, "", "text/html; charset=utf-8"},
		{"/console/main.js", "*/*", 200, "", "text/javascript; charset=utf-8"},
		{"/console/theme.css", "*/*", 200, "", "text/css; charset=utf-8"},
		{"/console/sample.mp4", "*/*", 200, "", "video/mp4"},
		{"/console/marked.license.txt", "*/*", 200, "", "text/plain; charset=utf-8"},
		{"/console/config.json", "*/*", 200, "", "application/json"},
		{"/console/../console.go", "*/*", http.StatusTeapot, "", ""},
		{"/console/static/main.js", "*/*", http.StatusTeapot, "", ""},
		{"/consoles", "*/*", http.StatusTeapot, "", ""},
		{"/v1/jobs", "*/*", http.StatusTeapot, "", ""},
	} {
		answer := get(handler, test.target, "Accept", test.accept)
		if answer.StatusCode != test.status || answer.Header.Get("Location") != test.location ||
			answer.Header.Get("Content-Type") != test.kind {
			t.Errorf("%s for %s: status %d, Location %q, Content-Type %q", test.target, test.accept, answer.StatusCode,
				answer.Header.Get("Location"), answer.Header.Get("Content-Type"))
		}
	}
}

func TestFilesAreCompressedAndCached(t *testing.T) {
	handler := newConsole(t)
	files, err := console.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		answer := get(handler, "/console/"+file.Name, "Accept-Encoding", "gzip, br")
		zipped, _ := io.ReadAll(answer.Body)
		reader, err := gzip.NewReader(strings.NewReader(string(zipped)))
		if err != nil {
			t.Fatalf("%s: %v", file.Name, err)
		}
		if content, err := io.ReadAll(reader); err != nil || string(content) != string(file.Content) {
			t.Errorf("%s differs from the compressed file: %v", file.Name, err)
		}
		plain := get(handler, "/console/"+file.Name)
		if plain.Header.Get("ETag") == answer.Header.Get("ETag") || plain.Header.Get("Vary") != "Accept-Encoding" ||
			plain.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: caches would confuse its encodings: %v", file.Name, plain.Header)
		}
		again := get(handler, "/console/"+file.Name, "Accept-Encoding", "gzip", "If-None-Match", answer.Header.Get("ETag"))
		if body, _ := io.ReadAll(again.Body); again.StatusCode != http.StatusNotModified || len(body) > 0 {
			t.Errorf("%s, requested again: status %d with %d bytes", file.Name, again.StatusCode, len(body))
		}
	}
}

func TestFirstVisitLoadsFewBytes(t *testing.T) {
	handler, sources := newConsole(t), sources(t)
	sizeOf := func(name string) int {
		answer := get(handler, "/console/"+name, "Accept-Encoding", "gzip")
		zipped, _ := io.ReadAll(answer.Body)
		return len(zipped)
	}
	first, later := sizeOf("hero.svg"), 0
	for name := range sources {
		switch kind := path.Ext(name); {
		case name == console.Index || named(sources[console.Index], name):
			first += sizeOf(name)
		case kind == ".js" && name != library || kind == ".css":
			later += sizeOf(name)
		}
	}
	if first > largest || later > largestLater {
		t.Errorf("a first visit loads %d bytes and the other pages %d, want at most %d and %d", first, later, largest,
			largestLater)
	}
	t.Logf("%d bytes, compressed, and %d later", first, later)
}

const library = "mediabunny.js"

func sources(t *testing.T) map[string]string {
	t.Helper()
	files, err := console.Files()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		texts[file.Name] = string(file.Content)
	}
	return texts
}

func named(index, name string) bool { return strings.Contains(index, `"`+name+`"`) }

func TestPolicyAllowsNamedOrigins(t *testing.T) {
	handler := newConsole(t)
	for host, connect := range map[string]string{
		"example.com:8080":     "connect-src 'self' http://example.com:8081;",
		"[::1]:8080":           "connect-src 'self' http://[::1]:8081;",
		"localhost":            "connect-src 'self' http://localhost:8081;",
		"a; script-src *:8080": "connect-src 'self';",
	} {
		request := httptest.NewRequest(http.MethodGet, "/console/", nil)
		request.Host = host
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		policy := answer.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, connect) || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self' 'sha256-") ||
			strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("for the host %q the policy is %q", host, policy)
		}
	}
}

// A module that is found only by parsing another module would arrive a round trip later, so modules are preloaded.
// Modules for pages that are opened later are not preloaded.
func TestModulesArePreloaded(t *testing.T) {
	sources := sources(t)
	static := regexp.MustCompile(`(?m)^(?:import|export) [^;]*?from "\./([\w-]+\.js)";`)
	needed, waiting := map[string]bool{}, []string{"main.js"}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		if needed[name] {
			continue
		}
		needed[name] = true
		for _, found := range static.FindAllStringSubmatch(sources[name], -1) {
			waiting = append(waiting, found[1])
		}
	}
	for name := range sources {
		if named := named(sources[console.Index], name); path.Ext(name) == ".js" && named != needed[name] {
			t.Errorf("%s names %s: %v, and main.js needs it: %v", console.Index, name, named, needed[name])
		}
	}
}

func TestFilesComplyWithPolicy(t *testing.T) {
	files, err := console.Files()
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	forbidden := regexp.MustCompile(
		`<script>|<style>|\sstyle="|\son[a-z]+="|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new ` +
			`Function|(?:src|href)="https?:|url\("?https?:`)
	for _, file := range files {
		// Strings in these libraries look like HTML. The browser tests detect policy violations.
		if path.Ext(file.Name) != ".js" && path.Ext(file.Name) != ".css" && path.Ext(file.Name) != ".html" ||
			file.Name == "marked.js" || file.Name == library {
			continue
		}
		// The page has one inline script, whose hash is in the policy.
		text := inline.ReplaceAllStringFunc(string(file.Content), func(script string) string {
			hash := sha256.Sum256([]byte(inline.FindStringSubmatch(script)[1]))
			if file.Name == console.Index &&
				strings.Contains(console.Policy(), base64.StdEncoding.EncodeToString(hash[:])) {
				return ""
			}
			return script
		})
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %s", file.Name, found)
		}
	}
}

func TestSettingsDescribeForms(t *testing.T) {
	answer := get(newConsole(t), "/console/config.json")
	var settings console.Settings
	if err := json.NewDecoder(answer.Body).Decode(&settings); err != nil {
		t.Fatal(err)
	}
	if settings.InferenceURL != "http://example.com:8081" {
		t.Errorf("the gateway is at %q", settings.InferenceURL)
	}
	models := map[string]console.Model{}
	for _, one := range settings.Models {
		models[one.ID] = one
	}
	restyle := models["acme-restyle-2"]
	if len(restyle.ExactlyOne) != 2 || restyle.OnlyWith["enhance_prompt"] != "prompt" ||
		restyle.Fields[0].Type != catalog.VideoFile {
		t.Errorf("the form of a restyle is %+v", restyle)
	}
	if !models["acme-pro-t2v"].URLEncoded {
		t.Errorf("the form of a text to video is %+v", models["acme-pro-t2v"])
	}
}

// A call needs at most 128 KiB of memory plus 20 bytes per byte received, because files are not copied.
func TestAnonymousCallsNeedLittleMemory(t *testing.T) {
	address := alloctest.Serve(t, newConsole(t))
	calls := alloctest.CheckAnonymous(t, address, "x-api-key: ", false, "GET /", "GET /console", "GET /console/", "HEAD /console/",
		"GET /console/main.js", "GET /console/sample.mp4", "GET /console/config.json", "GET /console/"+strings.Repeat("a/", 20<<10),
		"GET /console/"+strings.Repeat("%2e%2e/", 100))
	t.Logf("%d calls", calls)
}
