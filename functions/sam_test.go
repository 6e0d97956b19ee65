//go:build docker

package functions_test

import (
	"path/filepath"
	"slices"
	"testing"

	"cutroom/functions"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
)

// SAM runs the functions in Docker, against the deployment that `make local-aws` creates. `make sam-lambda` tests all
// events. `make sam-invoke` tests only some, because it starts SAM and a container for each.
func TestFunctionsRespondUnderSAM(t *testing.T) {
	local := awstest.StartLocal(t, "events")
	tables := map[string]string{}
	for _, table := range dynamo.Tables() {
		tables[table.Name] = dynamo.TableName(local.Stage, table.Name)
	}
	w := worldOf(t, local.Cloud, tables, "cutroom-"+local.Stage+"-"+awstest.Account+"-"+awstest.Region)
	w.fill(t)
	url := local.ServeBySAM(t, "sam-lambda")
	// These functions must handle their events in order, because later events use the records of earlier ones.
	ordered := []string{"jobs", "content", "c2pa", "images", "files", "arrived", "expiry"}
	others := slices.DeleteFunc(functions.Names(), func(name string) bool {
		return slices.Contains(ordered, name)
	})
	t.Run("sam-lambda", func(t *testing.T) {
		for lane, names := range map[string][]string{"ordered": ordered, "others": others} {
			t.Run(lane, func(t *testing.T) {
				t.Parallel() // SAM often waits for logs after a response
				for _, name := range names {
					if name == "arrived" {
						w.upload(t)
					}
					for _, path := range casesOf(t, name) {
						t.Run(name+"/"+filepath.Base(path), func(t *testing.T) {
							event, want := read(t, path)
							answer, err := local.InvokeBySAM(t.Context(), url, name, event)
							must(t, err)
							judgeBuffered(t, want, answer)
						})
					}
				}
			})
		}
	})
	for _, c := range []struct{ name, event string }{
		// The last event does not come from API Gateway.
		{"content", "whole"}, {"reaper", "timed-out"},
	} {
		t.Run("sam-invoke/"+c.name+"/"+c.event, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("events", c.name)
			answer, err := local.Make(t.Context(), "sam-invoke", "FUNCTION="+c.name,
				"EVENT="+filepath.Join(folder, c.event+".json"))
			must(t, err)
			_, want := read(t, filepath.Join("..", folder, c.event))
			judgeBuffered(t, want, answer)
		})
	}
}

func judgeBuffered(t *testing.T, want want, text []byte) {
	t.Helper()
	if want.Status == 0 {
		differ(t, "the answer", want.Answer, decode(t, text))
		return
	}
	answer, err := lambdatest.ReadAnswer(text)
	must(t, err)
	judge(t, want, answer.Status, answer.Header, answer.Body)
}
