//go:build docker

package functions_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cutroom/functions"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
)

// Every function answers the events of its folder in Docker, run by SAM, as the files
// beside them say. Each is invoked as a user does it, in the deploy of `make
// local-aws`.
func TestEventsBySAM(t *testing.T) {
	local := awstest.StartLocal(t, "events")
	tables := map[string]string{}
	for _, table := range dynamo.Tables() {
		tables[table.Name] = dynamo.TableName(local.Stage, table.Name)
	}
	w := worldOf(t, local.Cloud, tables, "cutroom-"+local.Stage+"-"+awstest.Account+"-"+awstest.Region)
	// The test takes longer than the age that jobs may reach.
	w.age = time.Hour
	w.fill(t)
	// The events of these have an order, as those of TestEvents have: what one makes or
	// deletes others would find. The others are apart from them.
	ordered := []string{"jobs", "content", "images", "files", "arrived", "expiry"}
	others := slices.DeleteFunc(functions.Names(), func(name string) bool {
		// What smoke tries are containers, of which a local deploy has none.
		return slices.Contains(ordered, name) || name == "smoke"
	})
	for lane, names := range map[string][]string{"ordered": ordered, "others": others} {
		t.Run(lane, func(t *testing.T) {
			t.Parallel()
			for _, name := range names {
				if name == "arrived" {
					w.upload(t)
				}
				for _, path := range casesOf(t, name) {
					t.Run(name+"/"+filepath.Base(path), func(t *testing.T) { answersBySAM(t, local, name, path) })
				}
			}
		})
	}
}

// answersBySAM sends an event to a function and checks the answer.
func answersBySAM(t *testing.T, local *awstest.Local, name, path string) {
	t.Helper()
	event, err := filepath.Abs(path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := local.Make(t.Context(), "sam-invoke", "FUNCTION="+name, "EVENT="+event, "KEY=events")
	if err != nil {
		t.Fatal(err)
	}
	_, want := read(t, path)
	if want.Status == 0 {
		differ(t, "the answer", want.Answer, decode(t, text))
		return
	}
	answer, err := lambdatest.ReadAnswer(text)
	if err != nil {
		t.Fatal(err)
	}
	judge(t, want, answer.Status, answer.Header, answer.Body)
}
