package engines_test

import (
	"fmt"
	"strings"
	"testing"

	"cutroom/shared/app/engines"
	"cutroom/shared/engine"
)

// A setting chooses an engine, whose type declares what it can do; an invalid one
// is refused.
func TestChoices(t *testing.T) {
	capabilities := map[string]engine.Capabilities{
		"*preview.Engine":     {},
		"*engineserver.Pool":  {Prefetch: true},
		"*openaimedia.Engine": {Prefetch: true},
	}
	for _, c := range []struct{ setting, key, want, err string }{
		{"", "", "*preview.Engine", ""},
		{"preview", "", "*preview.Engine", ""},
		{"http://127.0.0.1:8090", "", "*engineserver.Pool", ""},
		{"http://127.0.0.1:8090,http://127.0.0.1:8091", "", "*engineserver.Pool", ""},
		{"openai:http://127.0.0.1:8091", "", "*openaimedia.Engine", ""},
		{"openai:https://a.example/v1,http://b:8092", "secret", "*openaimedia.Engine", ""},
		{"Preview", "", "", "CUTROOM_ENGINE: "},
		{"https://127.0.0.1:8090", "", "", "CUTROOM_ENGINE: "},
		{"http://127.0.0.1:8090,", "", "", "CUTROOM_ENGINE: "},
		{"http://127.0.0.1:8090,http://127.0.0.1:8090", "", "", "CUTROOM_ENGINE: "},
		{"openai:", "", "", "CUTROOM_ENGINE: "},
		{"openai:http://a,", "", "", "CUTROOM_ENGINE: "},
		{"preview", "secret", "", "CUTROOM_ENGINE_KEY: "},
		{"http://127.0.0.1:8090", "secret", "", "CUTROOM_ENGINE_KEY: "},
	} {
		t.Run(c.setting+" "+c.key, func(t *testing.T) {
			made, err := engines.New(engines.Config{Setting: c.setting, Key: c.key})
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got the error %v, want %s…", err, c.err)
				}
				return
			}
			if got := fmt.Sprintf("%T", made); err != nil || got != c.want {
				t.Fatalf("got %s, %v; want %s", got, err, c.want)
			}
			if got := engine.CapabilitiesOf(made); got != capabilities[c.want] {
				t.Errorf("its capabilities are %+v, want %+v", got, capabilities[c.want])
			}
			if got, want := engines.Parse(c.setting).BuiltIn(), c.want == "*preview.Engine"; got != want {
				t.Errorf("built in: %t, want %t", got, want)
			}
		})
	}
}

func TestSlots(t *testing.T) {
	if n := engines.Parse("").Slots(); n < 1 {
		t.Errorf("the preview engine gets %d jobs of a lane at once", n)
	}
	for setting, want := range map[string]int{
		"http://127.0.0.1:8090": 1,
		"http://127.0.0.1:8090,http://127.0.0.1:8091,http://127.0.0.1:8092": 3,
		"openai:http://a,http://b": 1,
	} {
		if n := engines.Parse(setting).Slots(); n != want {
			t.Errorf("%s gets %d jobs of a lane at once, want %d", setting, n, want)
		}
	}
}
