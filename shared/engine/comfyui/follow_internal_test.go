package comfyui

import (
	"fmt"
	"strings"
	"testing"
)

func TestMeterIgnoresExtraNodes(t *testing.T) {
	m := newMeter(graph{"1": {Class: "Load"}, "2": {Class: "Save"}})
	for i := range 1000 {
		for _, kind := range []string{"executing", "progress"} {
			id := fmt.Sprint(i)
			if i%2 == 0 {
				id += strings.Repeat("0", maxID)
			}
			e := event{Type: kind}
			e.Data.Node, e.Data.Value, e.Data.Max = &id, 1, 1
			if fraction, _ := m.note(e); fraction > 1 {
				t.Fatalf("the progress is %g", fraction)
			}
		}
	}
	if len(m.finished) != 2 || len(m.stepped) > 3 {
		t.Errorf("%d nodes and the steps of %d are stored", len(m.finished), len(m.stepped))
	}
}
