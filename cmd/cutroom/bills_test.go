package main_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// withPrices sets a price per second for gen-2.1, and prices per image by size.
func withPrices(catalog string) string {
	for _, change := range [][2]string{
		{"\nlimits:", "\ncurrency: EUR\nlimits:"},
		{"    title: \"Edit a video, in a smaller size\"\n", "${0}    price: {per_second: 0.033333}\n"},
		{"    kind: image\n", "${0}    price: {per_edit: 0.0213, sizes: {480p: 0.01}}\n"},
	} {
		catalog = strings.Replace(catalog, change[0], strings.Replace(change[1], "${0}", change[0], 1), 1)
	}
	return catalog
}

// sums contains an account's totals: accepted jobs, completed jobs and the exact cost of the completed ones.
type sums struct {
	jobs, completed int
	cost            big.Rat
}

func (s *sums) add(t *testing.T, cost json.Number) {
	t.Helper()
	amount, ok := new(big.Rat).SetString(string(cost))
	if !ok {
		t.Fatalf("%q is not an amount", cost)
	}
	s.cost.Add(&s.cost, amount)
}

func (s *sums) text() string {
	return fmt.Sprintf("%d jobs, %d completed, for %s", s.jobs, s.completed, s.cost.FloatString(9))
}

func ofJobs(t *testing.T, client *servertest.Client) (all sums) {
	t.Helper()
	for cursor := ""; ; {
		var page struct {
			Jobs []struct {
				Status string
				Cost   struct{ Amount json.Number }
			}
			Next string `json:"next_cursor"`
		}
		answer, err := client.Get(bounded(t), "/v1/jobs?limit=1000"+cursor)
		if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &page) != nil {
			t.Fatalf("list the jobs: %v, %d %s", err, answer.Status, answer.Body)
		}
		for _, job := range page.Jobs {
			all.jobs++
			if job.Status == "completed" {
				all.completed++
				all.add(t, job.Cost.Amount)
			}
		}
		if cursor = "&cursor=" + page.Next; page.Next == "" {
			return all
		}
	}
}

// ofUsage adds up GET /v1/usage. It must have the expected number of rows.
func ofUsage(t *testing.T, server *servertest.Server, key, query string) (all sums) {
	t.Helper()
	answer, err := gatewayOf(server, key)(bounded(t), http.MethodGet, "/v1/usage?"+query, "")
	var used struct {
		Data []struct {
			Jobs      int
			Completed int `json:"jobs_completed"`
			Cost      json.Number
		}
	}
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &used) != nil {
		t.Fatalf("get the usage: %v, %d %s", err, answer.Status, answer.Body)
	}
	for _, row := range used.Data {
		all.jobs, all.completed = all.jobs+row.Jobs, all.completed+row.Completed
		if row.Cost != "" {
			all.add(t, row.Cost)
		}
	}
	return all
}

func TestUsageCountsEdits(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), "CUTROOM_CATALOG="+smallPictures(t))
	client := server.Client()
	const edits, callers = 10, 5
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range edits / callers {
				resolution := []string{"720p", "480p"}[(caller+i)%2]
				body, length, kind := servertest.Form{servertest.File("data", "a.png", fixtures.picture),
					servertest.Text("prompt", "film noir"), servertest.Text("resolution", resolution)}.Encode()
				answer, err := client.Call(bounded(t), http.MethodPost, "/v1/generate/gen-image-2", body, length, "Content-Type", kind)
				if err != nil || answer.Status != http.StatusOK {
					t.Errorf("%d %.200s, %v", answer.Status, answer.Body, err)
				}
			}
		})
	}
	all.Wait()
	broken, length, kind := servertest.Form{servertest.File("data", "a.png", fixtures.picture[:len(fixtures.picture)/2]),
		servertest.Text("prompt", "film noir")}.Encode()
	if answer, err := client.Call(bounded(t), http.MethodPost, "/v1/generate/gen-image-2", broken, length, "Content-Type",
		kind); err != nil || answer.Status != http.StatusUnprocessableEntity {
		t.Errorf("a truncated picture: %d %.200s, %v", answer.Status, answer.Body, err)
	}
	const want = "11 jobs, 10 completed, for 0.156500000"
	jobs := ofJobs(t, client)
	if got := jobs.text(); got != want {
		t.Errorf("the jobs: %s, want %s", got, want)
	}
	for _, groups := range []string{"", "group_by=key", "group_by=day,model,key"} {
		used := ofUsage(t, server, servertest.Key, groups)
		if got := used.text(); got != want {
			t.Errorf("the usage by %q: %s, want %s", groups, got, want)
		}
	}
	table, err := program.Run(bounded(t), []string{"CUTROOM_URL=" + server.URL(), "CUTROOM_INFERENCE_URL=" + server.InferenceURL(),
		"CUTROOM_API_KEY=" + servertest.Key}, "usage", "--by", "account,model", "--csv")
	if want := "account,model,requests,prompt_tokens,completion_tokens,cached_tokens,reasoning_tokens,estimated,session_seconds," +
		"jobs,cost,currency,jobs_completed,batch_requests,batch_cost,audio_seconds,characters\n" +
		"dev,gen-image-2,0,0,0,0,0,0,0,11,0.1565,EUR,10,0,,0,0\n"; err != nil || table.Stdout != want {
		t.Errorf("cutroom usage: %+v, %v; want %s", table, err, want)
	}
}
