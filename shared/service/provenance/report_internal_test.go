package provenance

import (
	"encoding/json"
	"strings"
	"testing"
)

// A report on a file whose manifest names itself, or others, again and again is bounded, and
// so is what each of them says.
func TestReportOfEndlessInputs(t *testing.T) {
	again := func(text string) string { return strings.TrimSuffix(strings.Repeat(text+",", 2*maxParts), ",") }
	text := `{"active_manifest": "one", "validation_state": "Invalid", "manifests": {"one": {
		"signature_info": {"issuer": "` + strings.Repeat("é", maxText) + `"}, "assertions": [{"label": "c2pa.actions.v2",
		"data": {"actions": [{"action": 1},` + again(`{"action": "c2pa.edited", "softwareAgent": "`+strings.Repeat("a", 2*maxText)+`"}`) + `]}}],
		"ingredients": [` + again(`{"relationship": "inputTo", "active_manifest": "one"}`) + `]}}}`
	report, err := parseReport([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("é", maxText/2) + "…"; report.SignedBy != want {
		t.Errorf("it is signed by %q, want %q", report.SignedBy, want)
	}
	if len(report.Actions) != maxParts || len(report.Inputs) > maxParts {
		t.Errorf("the first record has %d actions and %d inputs", len(report.Actions), len(report.Inputs))
	}
	told, err := json.Marshal(report)
	parts := strings.Count(string(told), `"action"`) + strings.Count(string(told), `"relationship"`) + strings.Count(string(told), "signed_by")
	if err != nil || parts > maxTold || parts < maxTold/2 || len(told) > 2*maxText*maxTold {
		t.Errorf("the report has %d parts and %d bytes: %v", parts, len(told), err)
	}
	if report.ByModel() {
		t.Error("the report says that a model made the file")
	}
}
