package main_test

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func packaged(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "scripts", "packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The unit allows the server to sandbox the programs that read untrusted media.
func TestSystemdUnitRestrictsTheServer(t *testing.T) {
	t.Parallel()
	unit := packaged(t, "cutroom.service")
	for _, line := range []string{
		"ExecStart=cutroom dev", "Restart=always", "RestartPreventExitStatus=8", "KillMode=mixed", "OOMPolicy=continue", "DynamicUser=yes",
		"StateDirectory=cutroom", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet=",
		"LimitNOFILE=65536",
		"EnvironmentFile=-/etc/cutroom/environment", "RestrictNamespaces=user mnt pid net ipc uts cgroup",
	} {
		if !slices.Contains(strings.Split(unit, "\n"), line) {
			t.Errorf("the unit has no %s", line)
		}
	}
	// Any of these settings would prevent the sandbox from being set up.
	for _, setting := range []string{"ProtectKernelTunables=", "ProtectProc=", "ProcSubset=", "PrivateUsers="} {
		if strings.Contains(unit, "\n"+setting) {
			t.Errorf("the unit has %s", setting)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd, which checks the rest, is not installed")
		return
	}
	path := filepath.Join(t.TempDir(), "cutroom.service")
	unit = strings.Replace(unit, "ExecStart=cutroom", "ExecStart="+string(program), 1)
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	// The exposure level ranges from 0 to 100; lower is better.
	for _, arguments := range [][]string{{"verify", path}, {"security", "--offline=yes", "--threshold=30", path}} {
		if said, err := exec.CommandContext(bounded(t), analyze, arguments...).CombinedOutput(); err != nil ||
			strings.Contains(string(said), path+":") {
			t.Errorf("systemd-analyze %s: %v\n%s", arguments[0], err, said)
		}
	}
}

func TestLaunchdFileMatchesTheUnit(t *testing.T) {
	values := properties(t, packaged(t, "com.cutroom.server.plist"))
	for key, want := range map[string]string{
		"Label": "com.cutroom.server", "ProgramArguments": "/usr/local/bin/cutroom dev", "UserName": "_cutroom",
		"KeepAlive": "true",
		"RunAtLoad": "true", "ExitTimeOut": "60", "Umask": "63", "CUTROOM_DATA": "/usr/local/var/cutroom",
		"NumberOfFiles": "65536",
	} {
		if values[key] != want {
			t.Errorf("%s is %q, want %q", key, values[key], want)
		}
	}
}

// properties returns the values in a property list by key. It joins the strings of an array.
func properties(t *testing.T, list string) map[string]string {
	t.Helper()
	values, key := map[string]string{}, ""
	var text strings.Builder
	for decoder := xml.NewDecoder(strings.NewReader(list)); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return values
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.StartElement:
			text.Reset()
		case xml.EndElement:
			switch content := strings.TrimSpace(text.String()); token.Name.Local {
			case "key":
				key = content
			case "true", "false":
				values[key] = token.Name.Local
			case "string", "integer":
				values[key] = strings.TrimSpace(values[key] + " " + content)
				if token.Name.Local == "integer" {
					values[key] = content
				}
			}
			text.Reset()
		}
	}
}
