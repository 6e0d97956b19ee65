// Package awscost knows what the service uses in AWS for everything that clients do with
// it, and what that costs by the public list prices. The uses were counted by
// bench/cost, which runs the functions and the worker against a local AWS; docs/cost.md
// is generated from them.
package awscost

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// Counts are what was counted and measured. They are kept in counts.json, from
// which docs/cost.md can be made again without counting.
type Counts struct {
	Scenarios []Scenario `json:"scenarios"`
	// WorkerHour is what a worker uses in an hour, busy or not.
	WorkerHour Quantities `json:"worker_hour"`
	// WorkMinute is what each minute of an engine's work uses.
	WorkMinute Quantities `json:"work_minute"`
	// Idle is what the default stack uses in a month without calls, Realtime what the
	// option realtime=true adds to it.
	Idle     Quantities `json:"idle_month"`
	Realtime Quantities `json:"realtime_month"`
	// Alarms is how many alarms the metrics of Idle belong to.
	Alarms int `json:"alarms"`
	// Looks is how often a month the schedule starts the function scale, which the
	// scenario "look" is one of.
	Looks float64 `json:"looks"`
}

// LookScenario is a look at how many workers are needed.
const LookScenario = "look"

// IdleMonth is what the default stack uses in a month without calls, the looks at
// whether workers are needed included.
func (c Counts) IdleMonth() Quantities {
	month := Quantities{}
	month.Add(c.Idle, 1)
	look, _ := c.Scenario(LookScenario)
	month.Add(look.Quantities, c.Looks)
	return month
}

// Scenario is one use of the service by a client.
type Scenario struct {
	// Name is one word, Title what the page calls it.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Runs is how often it was done; all other fields are for one run.
	Runs int `json:"runs"`
	// Calls are the calls on the wire by operation, including those of the state machine.
	Calls map[string]float64 `json:"calls"`
	// Functions are the invocations.
	Functions []Invocation `json:"functions"`
	// Quantities are what is priced.
	Quantities Quantities `json:"quantities"`
	// Metrics are the custom metrics that it writes to, however often it is done.
	Metrics int `json:"metrics,omitempty"`
}

// Invocation is one invocation of a function.
type Invocation struct {
	Function string `json:"function"`
	// Memory is in MB, Billed in milliseconds: the median.
	Memory int     `json:"memory"`
	Billed float64 `json:"billed_ms"`
}

//go:embed counts.json
var kept []byte

// Kept returns the counts in counts.json.
//
// Errors: the file does not contain counts.
func Kept() (Counts, error) {
	var c Counts
	decoder := json.NewDecoder(strings.NewReader(string(kept)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Counts{}, fmt.Errorf("counts.json: %w", err)
	}
	return c, nil
}

// JSON returns the counts as counts.json has them.
func (c Counts) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	return append(text, '\n'), err
}

// Scenario returns the scenario with the name; ok is false if there is none.
func (c Counts) Scenario(name string) (s Scenario, ok bool) {
	for _, s := range c.Scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// JobBar is what 1,000 video jobs may cost, from submission to their terminal
// state, in dollars (docs/cost.md).
const JobBar = 0.12

// IdleBar is what a month of the default deploy may cost in which nobody calls, in
// dollars at list price.
const IdleBar = 3.00

// Per1000Jobs is what 1,000 video jobs cost.
func (c Counts) Per1000Jobs() float64 {
	s, _ := c.Scenario("job")
	return 1000 * s.Quantities.Dollars()
}
