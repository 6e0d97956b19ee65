package c2pa

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// A report is limited even if the manifests refer to each other repeatedly.
func TestReportIsLimited(t *testing.T) {
	again := func(text string) string { return strings.TrimSuffix(strings.Repeat(text+",", 2*maxParts), ",") }
	text := `{"active_manifest": "one", "validation_state": "Invalid", "manifests": {"one": {
		"signature_info": {"issuer": "` + strings.Repeat("é", maxText) + `"}, "assertions": [{"label": "c2pa.actions.v2",
		"data": {"actions": [{"action": 1},` + again(`{"action": "c2pa.edited", "softwareAgent": "`+strings.Repeat("a", 2*maxText)+`"}`) + `]}}],
		"ingredients": [` + again(`{"relationship": "inputTo", "active_manifest": "one", "validation_status": [`+
		again(`{"code": "wrong"}`)+`]}`) + `]}}}`
	report, err := parseReport([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("é", maxText/2) + "…"; report.SignedBy != want {
		t.Errorf("signed by %q, want %q", report.SignedBy, want)
	}
	if len(report.Actions) != maxParts || len(report.Inputs) > maxParts {
		t.Errorf("the first record has %d actions and %d inputs", len(report.Actions), len(report.Inputs))
	}
	encoded, err := json.Marshal(report)
	parts := strings.Count(string(encoded), `"action"`) + strings.Count(string(encoded), `"wrong: "`) + strings.Count(string(encoded), `"relationship"`) + strings.Count(string(encoded), "signed_by")
	if err != nil || parts > maxItems || parts < maxItems/2 || len(encoded) > 2*maxText*maxItems {
		t.Errorf("the report has %d parts and %d bytes: %v", parts, len(encoded), err)
	}
	if report.ByModel() {
		t.Error("the report claims that a model made the file")
	}
}

func TestReportIgnoresUnknownGeneratorMembers(t *testing.T) {
	report, err := parseReport([]byte(`{"active_manifest": "one", "validation_state": "Valid", "manifests": {"one": {
		"claim_generator_info": [{"name": "a program", "Name": 1, "version": "2", "VERSION": {}}]}}}`))
	if err != nil || report.Generator != "a program 2" {
		t.Errorf("written by %q: %v", report.Generator, err)
	}
}

// C2PA versions report problems in different formats.
func TestReportShowsProblemsOfInputs(t *testing.T) {
	report, err := parseReport([]byte(`{"active_manifest": "one", "validation_state": "Valid", "manifests": {"one": {"ingredients": [
		{"validation_status": [{"code": "signingCredential.untrusted"}, {"code": "assertion.dataHash.mismatch", "explanation": null}]},
		{"validation_results": {"activeManifest": {"failure": [{"code": "signingCredential.expired", "explanation": "expired"}]}}},
		{"validation_results": {"activeManifest": {"failure": [{"code": "signingCredential.untrusted"}]}}},
		{"validation_results": null, "validation_status": null}]}}}`))
	var got []string
	for _, in := range report.Inputs {
		got = append(got, strings.Join(in.Problems, "|"))
	}
	want := []string{"assertion.dataHash.mismatch: ", "signingCredential.expired: expired", "", ""}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the problems are %q, want %q: %v", got, want, err)
	}
}

func TestReportWithTooManyValuesIsRejected(t *testing.T) {
	text := `{"manifests": {"one": {"assertions": [` + strings.Repeat("{},", maxValues) + `{}]}}}`
	if _, err := parseReport([]byte(text)); !errors.Is(err, errBoxes) {
		t.Errorf("the report was accepted: %v", err)
	}
}
