//go:build docker

package functions_test

import (
	"path/filepath"
	"testing"

	"cutroom/functions"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
)

// Every function answers the events of its folder in Docker, by SAM, as the files beside
// them say: each as a user invokes it, against the deploy that `make local-aws` makes.
func TestEventsBySAM(t *testing.T) {
	local := awstest.StartLocal(t, "events")
	tables := map[string]string{}
	for _, table := range dynamo.Tables() {
		tables[table.Name] = dynamo.TableName(local.Stage, table.Name)
	}
	w := worldOf(t, local.Cloud, tables, "cutroom-"+local.Stage+"-"+awstest.Account+"-"+awstest.Region)
	w.fill(t)
	w.upload(t)
	t.Run("all", func(t *testing.T) {
		for _, name := range functions.Names() {
			t.Run(name, func(t *testing.T) {
				// The events of a function have an order, and jobs lists no job of images.
				if name != "jobs" {
					t.Parallel()
				}
				for _, path := range casesOf(t, name) {
					t.Run(filepath.Base(path), func(t *testing.T) { answersBySAM(t, local, name, path) })
				}
			})
		}
	})
}

// answersBySAM gives a function one event and judges its answer.
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
