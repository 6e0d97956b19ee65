package api_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	"cutroom/shared/domain/job"
)

type jobPage struct {
	Jobs []struct {
		ID     string `json:"job_id"`
		Status string
	}
	NextCursor *string `json:"next_cursor"`
}

func (w *world) jobPage(key, query string) (page jobPage) {
	w.t.Helper()
	a := w.get("/v1/jobs?"+query, key)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 || page.Jobs == nil {
		w.t.Fatalf("%s: %d %s", query, a.status, a.body)
	}
	return page
}

func (w *world) jobIDs(key, query string) []string {
	w.t.Helper()
	ids, cursor := []string{}, ""
	for range 100 {
		page := w.jobPage(key, query+cursor)
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if page.NextCursor == nil {
			return ids
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	w.t.Fatal("the list does not end")
	return nil
}

func TestJobListIsFilteredAndPaged(t *testing.T) {
	w := newWorld(t, setup{})
	if got := w.jobIDs(studio, "limit=1"); len(got) != 0 {
		t.Errorf("without jobs there are %v", got)
	}
	w.submit(rival)
	pending, processing, completed, failed := w.submit(studio), w.submit(studio), w.submit(studio), w.submit(studio)
	edit := w.accepted(w.post("gen-latest", studio, upload("data", clip(t))))
	w.start(processing)
	w.start(completed)
	w.complete(completed, "bytes", "video/mp4")
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.InvalidInput, Message: "x"})
	all := []string{edit, failed, completed, processing, pending}
	slices.Sort(all) // ids from the same millisecond are in random order
	slices.Reverse(all)

	// A list entry equals the job's own record, except that it lacks a pending job's estimates.
	var first struct{ Jobs []json.RawMessage }
	if err := json.Unmarshal([]byte(w.get("/v1/jobs?status=failed&limit=1", studio).body), &first); err != nil || len(first.Jobs) != 1 {
		t.Fatalf("a page with limit 1 has %d jobs, %v", len(first.Jobs), err)
	}
	if alone := w.get("/v1/jobs/"+failed, studio).body; string(first.Jobs[0]) != alone {
		t.Errorf("the list shows %s, GET shows %s", first.Jobs[0], alone)
	}
	for query, want := range map[string][]string{
		"":                              all,
		"limit=2":                       all,
		"limit=5":                       all,
		"status=pending&model=gen-2.5":  {edit},
		"model=gen-latest":              {edit},
		"status=processing&limit=1":     {processing},
		"status=completed":              {completed},
		"status=failed":                 {failed},
		"status=failed&model=gen-clip":  {},
		"status=failed&limit=1&model=":  {failed},
		"status=&model=&limit=&cursor=": all,
	} {
		if got := w.jobIDs(studio, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

// A cursor is valid for one account and one list (docs/contract/media.md#pages).
func TestJobListQueryIsValidated(t *testing.T) {
	w := newWorld(t, setup{})
	w.submit(studio)
	w.submit(studio)
	w.submit(rival)
	w.submit(rival)
	const bad = `{"loc":["query","cursor"],"msg":"Value error, The cursor is invalid: this endpoint did not return it.",` +
		`"type":"value_error","input":`
	cursor := *w.jobPage(studio, "limit=1").NextCursor
	changed := "x" + cursor[1:]
	if changed == cursor {
		changed = "y" + cursor[1:]
	}
	ofRival := *w.jobPage(rival, "limit=1").NextCursor
	w.keep(studio, "one")
	w.keep(studio, "two")
	ofFiles := *w.list(studio, "limit=1").NextCursor
	for query, want := range map[string]string{
		"status=done": `{"loc":["query","status"],"msg":"Input should be 'pending', 'processing', 'completed' or ` +
			`'failed'","type":"literal_error",` +
			`"input":"done","ctx":{"expected":"'pending', 'processing', 'completed' or 'failed'"}}`,
		"model=gen-9": `{"loc":["query","model"],"msg":"Value error, There is no such model.",` +
			`"type":"value_error","input":"gen-9","ctx":{}}`,
		"cursor=" + ofRival: bad + `"` + ofRival + `","ctx":{}}`,
		"cursor=" + ofFiles: bad + `"` + ofFiles + `","ctx":{}}`,
		"cursor=" + changed: bad + `"` + changed + `","ctx":{}}`,
		"limit=0&model=x&cursor=x": `{"loc":["query","limit"],"msg":"Input should be greater than or equal to 1",` +
			`"type":"greater_than_equal","input":"0","ctx":{"ge":1}},` + bad +
			`"x","ctx":{}},{"loc":["query","model"],"msg":"Value error, There is no such model.","type":"value_error",` +
			`"input":"x","ctx":{}}`,
		"limit=1001&status=pending": `{"loc":["query","limit"],"msg":"Input should be less than or equal to 1000",` +
			`"type":"less_than_equal","input":"1001","ctx":{"le":1000}}`,
	} {
		if a := w.get("/v1/jobs?"+query, studio); a.status != 422 || a.body != `{"detail":[`+want+`]}` {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	if a := w.get("/v1/jobs?limit=1000&cursor="+cursor, studio); a.status != 200 {
		t.Errorf("a cursor with another limit: %d %s", a.status, a.body)
	}
}
