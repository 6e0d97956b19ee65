package livekit_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"cutroom/shared/service/realtime/livekit"
)

// described are the messages and enumerations of this package: of each its members, and
// of each member its number and its type.
type described map[string]map[string]string

func (d described) messages(all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		message := all.Get(i)
		if message.IsMapEntry() {
			continue
		}
		members := map[string]string{}
		for j := range message.Fields().Len() {
			f := message.Fields().Get(j)
			kind := f.Kind().String()
			switch {
			case f.IsMap():
				kind = "map"
			case f.Message() != nil:
				kind = string(f.Message().Name())
			case f.Enum() != nil:
				kind = string(f.Enum().Name())
			}
			text, _ := json.Marshal([]any{f.Number(), kind, f.IsList() || f.IsMap()})
			members[string(f.Name())] = string(text)
		}
		d[string(message.Name())] = members
		d.messages(message.Messages())
		d.enums(message.Enums())
	}
}

func (d described) enums(all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		values := map[string]string{}
		for j := range all.Get(i).Values().Len() {
			value := all.Get(i).Values().Get(j)
			text, _ := json.Marshal([]any{value.Number()})
			values[string(value.Name())] = string(text)
		}
		d[string(all.Get(i).Name())] = values
	}
}

// The messages are those of the package livekit-protocol, as far as they go.
func TestMessagesAreThoseOfLiveKit(t *testing.T) {
	python, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	own := described{}
	own.messages(livekit.File_signal_proto.Messages())
	own.enums(livekit.File_signal_proto.Enums())
	text, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	// What a test has read, Go knows: it keeps no result of a script that has changed.
	script, err := os.ReadFile(filepath.Join("testdata", "compare.py"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "-c", string(script))
	command.Stdin = strings.NewReader(string(text))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v (scripts/install-test-tools.sh installs what this needs)\n%s", err, out)
	}
	if len(out) > 0 {
		t.Errorf("differs from livekit-protocol:\n%s", out)
	}
}
