package setting_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/app/setting"
)

func TestSizesAreParsed(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "512MiB": 512 << 20, " 2GiB\n": 2 << 30, "3KiB": 3 << 10, "5120GiB": 5 << 40,
	} {
		var size setting.Size
		if err := size.UnmarshalText([]byte(text)); err != nil || int64(size) != want {
			t.Errorf("%q is %d, %v; want %d", text, size, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "+1", "1_000", "1.5GiB", "1 MiB", "MiB", "1MB", "1mib", "5121GiB",
		"99999999999999999999", "0x10"} {
		var size setting.Size
		if err := size.UnmarshalText([]byte(text)); err == nil || size != 0 {
			t.Errorf("%q is %d", text, size)
		}
	}
}

func TestInvalidVariablesAreNamed(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.yaml")
	if err := os.WriteFile(broken, []byte("nothing: [of use"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variables string
		ask       func(*setting.Environment) any
		want      string
		err       string
	}{
		{"A=b", func(e *setting.Environment) any { return e.Required("A") }, "b", ""},
		{"", func(e *setting.Environment) any { return e.Required("A") }, "", "A: must be set"},
		{"", func(e *setting.Environment) any { return e.Required("A") + e.Required("B") }, "", "A: must be set"},
		{"", func(e *setting.Environment) any { return e.Optional("A") }, "", ""},
		{"A=true", func(e *setting.Environment) any { return e.Flag("A") }, "true", ""},
		{"A=false", func(e *setting.Environment) any { return e.Flag("A") }, "false", ""},
		{"", func(e *setting.Environment) any { return e.Flag("A") }, "false", ""},
		{"A=yes", func(e *setting.Environment) any { return e.Flag("A") }, "false", `A: "yes" must be true or false`},
		{"A=http://127.0.0.1:4566", func(e *setting.Environment) any { return e.URL("A") }, "http://127.0.0.1:4566", ""},
		{"", func(e *setting.Environment) any { return e.URL("A") }, "", ""},
		{"A=s3.example.com", func(e *setting.Environment) any { return e.URL("A") }, "s3.example.com",
			`A: "s3.example.com" must be the URL of a server, for example https://s3.example.com`},
		{"A=https://s3.example.com/a", func(e *setting.Environment) any { return e.URL("A") }, "https://s3.example.com/a",
			`A: "https://s3.example.com/a" must be the URL of a server`},
		{"A=3", func(e *setting.Environment) any { return e.Number("A", 1, 9, 5) }, "3", ""},
		{"", func(e *setting.Environment) any { return e.Number("A", 1, 9, 5) }, "5", ""},
		{"A=10", func(e *setting.Environment) any { return e.Number("A", 1, 9, 5) }, "10",
			`A: "10" must be an integer from 1 to 9`},
		{"A=2GiB", func(e *setting.Environment) any { return e.Size("A") }, fmt.Sprint(2 << 30), ""},
		{"", func(e *setting.Environment) any { return e.Size("A") }, "0", ""},
		{"A=big", func(e *setting.Environment) any { return e.Size("A") }, "0",
			`A: "big" must be a size such as 1048576, 512MiB or 2GiB`},
		{"", func(e *setting.Environment) any { return e.Origins() }, "[]", ""},
		{"CUTROOM_CORS_ORIGINS=*", func(e *setting.Environment) any { return e.Origins() }, "[*]", ""},
		{"CUTROOM_CORS_ORIGINS=https://B.example.com,http://a:81", func(e *setting.Environment) any { return e.Origins() },
			"[https://b.example.com http://a:81]", ""},
		{"CUTROOM_CORS_ORIGINS=b", func(e *setting.Environment) any { return e.Origins() }, "[]",
			`CUTROOM_CORS_ORIGINS: "b" must be * or an origin such as https://app.example.com`},
		{"", func(e *setting.Environment) any { return e.Catalog().Models()[0].ID }, "gen-restyle-2", ""},
		{"CUTROOM_FAMILY=acme", func(e *setting.Environment) any { return e.Catalog().Models()[0].ID }, "acme-restyle-2", ""},
		{"CUTROOM_FAMILY=a/b", func(e *setting.Environment) any { return e.Catalog() == nil }, "true", "CUTROOM_FAMILY: "},
		{"CUTROOM_CATALOG=" + folder + "/none", func(e *setting.Environment) any { return e.Catalog() == nil }, "true",
			"CUTROOM_CATALOG: "},
		{"CUTROOM_CATALOG=" + broken, func(e *setting.Environment) any { return e.Catalog() == nil }, "true",
			"CUTROOM_CATALOG: " + broken},
		{"", func(e *setting.Environment) any { return e.Tiers()["default"].Name }, "default", ""},
		{"CUTROOM_TIERS=" + broken, func(e *setting.Environment) any { return len(e.Tiers()) }, "0",
			"CUTROOM_TIERS: " + broken},
	} {
		variables := map[string]string{}
		if name, value, found := strings.Cut(c.variables, "="); found {
			variables[name] = value
		}
		e := setting.NewEnvironment(func(name string) string { return variables[name] })
		if got := fmt.Sprint(c.ask(e)); got != c.want {
			t.Errorf("%q is read as %q, want %q", c.variables, got, c.want)
		}
		if err := fmt.Sprint(e.Err()); c.err == "" && e.Err() != nil || !strings.HasPrefix(err, c.err) {
			t.Errorf("%q returns the error %q, want %q", c.variables, err, c.err)
		}
	}
}

func TestFunctionsReadJSON(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := map[string]string{
		"CUTROOM_TIERS": write("tiers.json", `{"default": {"PendingJobs": 3}}`), "CUTROOM_CATALOG": write("catalog.json", "{}"),
	}
	e := setting.NewFunction(func(name string) string { return files[name] })
	if got := e.Tiers().Find("default").PendingJobs; got != 3 || e.Err() != nil {
		t.Errorf("a tier has %d pending jobs, %v", got, e.Err())
	}
	if e.Catalog(); e.Err() == nil || !strings.Contains(e.Err().Error(), "catalog.json: limits") {
		t.Errorf("an empty catalog: %v", e.Err())
	}
	files["CUTROOM_TIERS"] = write("tiers.yaml", "default: {pending_jobs: 3}")
	e = setting.NewFunction(func(name string) string { return files[name] })
	if e.Tiers(); e.Err() == nil {
		t.Error("the function accepted YAML")
	}
}
