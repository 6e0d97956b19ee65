package scripts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// parsing lists the modules that read untrusted bytes (from clients, upstreams, media and files). Each has the oldest
// version that go.mod may require, which was the newest release when the list was last updated. Unlike govulncheck,
// this test needs no access to Go's vulnerability database.
//
// To update it: go list -m -u MODULE…, go get MODULE@VERSION, and then change the version in this list.
var parsing = map[string]string{
	"code.dny.dev/ssrf":                        "v0.3.0",                             // IANA's blocks, for webhooks
	"github.com/coder/websocket":               "v1.8.15",                            // frames from realtime clients
	"github.com/gabriel-vasile/mimetype":       "v1.4.16",                            // the first bytes of uploads
	"github.com/go-json-experiment/json":       "v0.0.0-20260820222146-c27c302e5fc3", // requests
	"github.com/goccy/go-yaml":                 "v1.19.2",                            // the catalog and the tiers
	"github.com/golang-jwt/jwt/v5":             "v5.3.1",                             // client tokens
	"github.com/google/jsonschema-go":          "v0.4.3",                             // agents' requests
	"github.com/modelcontextprotocol/go-sdk":   "v1.8.0",                             // agents' requests
	"github.com/openai/openai-go/v3":           "v3.95.0",                            // model servers, in tests
	"github.com/prometheus/client_golang":      "v1.25.0",                            // requests for /metrics
	"github.com/santhosh-tekuri/jsonschema/v6": "v6.0.3",                             // schemas, in tests
	"github.com/segmentio/encoding":            "v0.5.4",                             // agents' requests
	"github.com/tidwall/gjson":                 "v1.20.0",                            // upstream traffic
	"github.com/tidwall/match":                 "v1.1.1",                             // upstream traffic
	"github.com/tidwall/sjson":                 "v1.2.5",                             // upstream traffic
	"go.opentelemetry.io/otel":                 "v1.47.0",                            // traceparent
	"go.yaml.in/yaml/v2":                       "v2.4.5",                             // dependency of Prometheus
	"golang.org/x/net":                         "v0.62.0",                            // HTTP
	"golang.org/x/sys":                         "v0.49.0",                            // the decoder sandbox
	"golang.org/x/text":                        "v0.43.0",                            // host and file names
	"google.golang.org/grpc":                   "v1.85.0",                            // for trace export
	"google.golang.org/protobuf":               "v1.36.12",                           // for trace export
	"modernc.org/sqlite":                       "v1.61.1",                            // the database file
}

// newestPatch is the newest known patch release of the Go version in use. The standard library
// reads most of the untrusted bytes.
const newestPatch = "go1.26.11"

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func modules(content string) map[string]string {
	required := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)`).FindAllStringSubmatch(content, -1) {
		required[found[1]] = found[2]
	}
	return required
}

// If this fails, run make licenses, which rewrites the table of licenses.
func TestLicensesMatchModules(t *testing.T) {
	required := modules(read(t, "go.mod"))
	table := read(t, "docs", "third-party.tsv")
	rows := regexp.MustCompile(`(?m)^Go module\t(\S+)\t(v\d\S*)\t`).FindAllStringSubmatch(table, -1)
	if len(rows) == 0 {
		t.Fatal("docs/third-party.tsv names no module")
	}
	for _, row := range rows {
		// A row names a package, or the module itself.
		module := row[1]
		for required[module] == "" && strings.Contains(module, "/") {
			module = module[:strings.LastIndex(module, "/")]
		}
		if required[module] != row[2] {
			t.Errorf("%s is listed with %s; go.mod requires %q", row[1], row[2], required[module])
		}
	}
}

func TestParsersAreUpToDate(t *testing.T) {
	content := read(t, "go.mod")
	required := modules(content)
	for module, least := range parsing {
		switch version, ok := required[module]; {
		case !ok:
			t.Errorf("%s is no longer required; remove it from the list", module)
		case before(version, least):
			t.Errorf("%s is at %s, older than %s", module, version, least)
		}
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain (go\S+)$`).FindStringSubmatch(content)
	if toolchain == nil || before(toolchain[1], newestPatch) {
		t.Errorf("the toolchain is %v, older than %s", toolchain, newestPatch)
	}
}

// number matches a number in a version. In a pseudo-version, the first three are followed by the timestamp.
var number = regexp.MustCompile(`\d+`)

func before(one, other string) bool {
	these, those := number.FindAllString(one, -1), number.FindAllString(other, -1)
	for i := range min(len(these), len(those), 4) {
		this, _ := strconv.ParseUint(these[i], 10, 64)
		that, _ := strconv.ParseUint(those[i], 10, 64)
		if this != that {
			return this < that
		}
	}
	return false
}

func TestLocalAWSPageNamesInstalledVersions(t *testing.T) {
	page := read(t, "docs", "local-aws.md")
	for _, c := range []struct{ name, pinned, file string }{
		{"MiniStack", "ministack", "requirements.txt"},
		{"SAM CLI", "aws-sam-cli", "requirements-template.txt"},
	} {
		found := regexp.MustCompile(`(?m)^` + c.pinned + `==(\S+)$`).FindStringSubmatch(read(t, "scripts", c.file))
		if found == nil {
			t.Fatalf("%s pins no %s", c.file, c.pinned)
		}
		if want := c.name + " " + found[1] + " (`scripts/" + c.file + "`)"; !strings.Contains(page, want) {
			t.Errorf("docs/local-aws.md does not contain %q", want)
		}
	}
}
