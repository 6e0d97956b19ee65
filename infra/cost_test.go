package main

import (
	"encoding/json"
	"maps"
	"testing"

	"cutroom/bench/cost"
	"cutroom/shared/app/awscost"
)

// docs/cost.md gives the price of exactly the resources of this stack.
func TestCostPageMatchesTheStack(t *testing.T) {
	counts, err := awscost.Kept()
	if err != nil {
		t.Fatal(err)
	}
	made := synthesize(t, nil)
	text, err := json.Marshal(made.ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	idle, looks, err := cost.Month(text)
	if err != nil {
		t.Fatal(err)
	}
	const again = "run `go run ./bench/costpage`"
	if !maps.Equal(idle, counts.Idle) {
		t.Errorf("an idle month takes %v, priced is %v: %s", idle, counts.Idle, again)
	}
	if looks != counts.Looks {
		t.Errorf("workers are looked after %v times a month, priced are %v: %s", looks, counts.Looks, again)
	}
	const bar = 3
	if month := counts.IdleMonth().Dollars(); month >= bar {
		t.Errorf("an idle month costs $%.2f, the bar is $%d", month, bar)
	}
	memory := map[any]any{}
	for _, r := range made.of(t, "AWS::Lambda::Function") {
		memory[r.Properties["FunctionName"]] = r.Properties["MemorySize"]
	}
	for _, s := range counts.Scenarios {
		for _, f := range s.Functions {
			if memory["cutroom-dev-"+f.Function] != float64(f.Memory) {
				t.Errorf("%s has %v MB, priced are %d: %s", f.Function, memory["cutroom-dev-"+f.Function], f.Memory, again)
			}
		}
	}
}
