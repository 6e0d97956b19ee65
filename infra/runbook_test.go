package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/runbook.md has exactly one section for every alarm, and each alarm's description refers to it.
func TestRunbookHasEveryAlarm(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Alarms\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("the runbook has no section about alarms")
	}
	var described []string
	for _, heading := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(section, -1) {
		described = append(described, heading[1])
	}
	var made []string
	all := containersOf(t).of(t, "AWS::CloudWatch::Alarm")
	maps.Copy(all, synthesizeGPU(t, map[string]any{"gpu": "prepare"}).of(t, "AWS::CloudWatch::Alarm"))
	for _, alarm := range all {
		name := strings.TrimPrefix(alarm.Properties["AlarmName"].(string), "cutroom-dev-")
		made = append(made, name)
		if !slices.Contains(described, name) {
			t.Errorf("the runbook has no %s", name)
		}
		if description, _ := alarm.Properties["AlarmDescription"].(string); !strings.HasSuffix(description, ` See "`+name+
			`" in docs/runbook.md.`) {
			t.Errorf("%s does not lead to the runbook: %q", name, description)
		}
	}
	for _, alarm := range synthesize(t, contextOfPreviews).of(t, "AWS::CloudWatch::Alarm") {
		if name := strings.TrimPrefix(alarm.Properties["AlarmName"].(string), "cutroom-dev-"); !slices.Contains(made, name) {
			t.Errorf("%s is missing in a deployment with all options", name)
		}
	}
	for _, name := range described {
		if !slices.Contains(made, name) {
			t.Errorf("the runbook has %s, which is not an alarm", name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#([a-z-]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(described, link[1]) {
			t.Errorf("the runbook links to the missing section %s", link[1])
		}
	}
}
