package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A data-only stack is never deployed, because CloudFormation would remove the rest of the stage.
func TestDataOnlyStackIsNotDeployed(t *testing.T) {
	for context, rejected := range map[string]bool{"-c stage=prod -c only=data": true, "-c stage=prod": false} {
		out, err := exec.CommandContext(t.Context(), "make", "-C", "..", "not-data-alone", "CONTEXT="+context).CombinedOutput()
		if (err != nil) != rejected || strings.Contains(string(out), "only=data is for make import.") != rejected {
			t.Errorf("%q: %v %s", context, err, out)
		}
	}
}

// docs/runbook.md contains the resource mapping for the import.
func TestRetainedDataCanBeImported(t *testing.T) {
	full := synthesize(t, map[string]any{"stage": "prod", "worker": "none", "watch": "off"})
	alone := synthesize(t, map[string]any{"stage": "prod", "only": "data"})
	identifiers := map[string]string{
		"AWS::DynamoDB::GlobalTable": "TableName", "AWS::S3::Bucket": "BucketName", "AWS::SecretsManager::Secret": "Id",
	}
	stays := map[string]string{}
	for id, r := range alone.resources {
		identifier, kept := identifiers[r.Type]
		if !kept {
			if r.Type != "AWS::S3::BucketPolicy" && r.Type != "AWS::CDK::Metadata" {
				t.Errorf("%s (%s) must not be imported", id, r.Type)
			}
			continue
		}
		stays[id] = identifier
		if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" || full.resources[id].Type != r.Type ||
			full.resources[id].DeletionPolicy != "Retain" {
			t.Errorf("%s is %s, %s here and %+v in the full stack", id, r.DeletionPolicy, r.UpdateReplacePolicy, full.resources[id])
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, reference := range regexp.MustCompile(`"(?:Ref|Fn::GetAtt|DependsOn)":\[?"([^"]+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(reference[1], "AWS::") {
				t.Errorf("%s refers to %s", id, reference[1])
			}
		}
	}
	for id, r := range full.resources {
		if _, kept := identifiers[r.Type]; kept && stays[id] == "" {
			t.Errorf("%s is not imported", id)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, mapping, _ := strings.Cut(string(text), "<<END\n")
	mapping, _, found := strings.Cut(mapping, "\nEND\n")
	described := map[string]map[string]string{}
	if err := json.Unmarshal([]byte(mapping), &described); err != nil || !found {
		t.Fatalf("docs/runbook.md has no mapping: %v", err)
	}
	documented := map[string]string{}
	for id, names := range described {
		if keys := slices.Collect(maps.Keys(names)); len(keys) == 1 {
			documented[id] = keys[0]
		}
	}
	if !maps.Equal(documented, stays) {
		t.Errorf("docs/runbook.md imports %v, want %v", documented, stays)
	}
}
