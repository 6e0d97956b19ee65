package cost_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cutroom/bench/cost"
	"cutroom/shared/app/awscost"
	"cutroom/shared/testkit/awstest"
)

const again = "run `go run ./bench/costpage`"

func kept(t *testing.T) awscost.Counts {
	t.Helper()
	counts, err := awscost.Kept()
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// The page is generated from the counts and the prices.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cost.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != cost.Page(kept(t)) {
		t.Errorf("docs/cost.md is not of shared/app/awscost/counts.json: run `go run ./bench/costpage page`")
	}
}

// What docs/deploy.md says of costs is generated too, and no other page has figures of
// its own, which would stay as they are when these change.
func TestFiguresComeFromOnePlace(t *testing.T) {
	root := filepath.Join("..", "..")
	deploy := filepath.Join(root, "docs", "deploy.md")
	text, err := os.ReadFile(deploy)
	if err != nil {
		t.Fatal(err)
	}
	if page, err := cost.WithSummary(string(text), kept(t)); err != nil || page != string(text) {
		t.Errorf("docs/deploy.md is not of shared/app/awscost/counts.json (%v): run `go run ./bench/costpage page`", err)
	}
	dollars := regexp.MustCompile(`\$[0-9]+(\.[0-9]+)?\b.{0,40}`)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "gpu/*.md", "packaging/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if !slices.Contains(pages, deploy) {
		t.Fatalf("the pages are %v", pages)
	}
	for _, name := range pages {
		if name == filepath.Join(root, "docs", "cost.md") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, figure := range dollars.FindAllString(cost.WithoutSummary(string(text)), -1) {
			t.Errorf("%s has a figure of its own: %s", name, figure)
		}
	}
}

// Everything that is counted has a price.
func TestPrices(t *testing.T) {
	priced := map[awscost.Item]bool{}
	for _, p := range awscost.Prices() {
		if p.Dollars <= 0 || p.Per < 1 || p.Page == "" {
			t.Errorf("the price %+v", p)
		}
		priced[p.Item] = true
	}
	c := kept(t)
	all := []awscost.Quantities{c.Idle, c.IdleMonth(), c.Realtime, c.WorkerHour, c.WorkMinute}
	for _, s := range c.Scenarios {
		all = append(all, s.Quantities)
	}
	for _, quantities := range all {
		if len(quantities) == 0 {
			t.Error("something takes nothing")
		}
		for item := range quantities {
			if !priced[item] {
				t.Errorf("%q has no price", item)
			}
		}
	}
}

// operation is a number of calls of an operation of docs/aws-calls.md.
type operation struct {
	times      int
	of, called string
}

// The counts agree with docs/aws-calls.md, which tests compare with the wire: when that
// page changes, the counts must be made again.
func TestCountsAreTheDocumentedCalls(t *testing.T) {
	authenticated := []operation{{1, "Keys", "FindKey"}}
	counted := append(authenticated, operation{1, "Rates", "Take, in use"})
	for _, c := range []struct {
		scenario   string
		operations []operation
		// others are calls of the state machine, of functions that the page leaves out,
		// and of clients.
		others map[string]float64
	}{
		{"job", append(counted,
			// The limits are checked before the body is read and after it.
			operation{2, "Jobs", "Backlog"},
			// Without an engine that tells, they are asked for once a second.
			operation{1, "Estimates", "Estimates"},
			// Budgets are asked for twice a minute.
			operation{1, "Budgets", "Budgets"},
			operation{1, "Store", "Put, up to 8 MiB"}, operation{1, "Jobs", "Accept"},
			operation{1, "Queue", "Receive"}, operation{1, "Runs", "Start"}, operation{2, "Store", "Open"},
			operation{1, "Store", "Put, up to 8 MiB"}, operation{1, "Delivery", "Complete"},
			// The thumbnails, after the job's end.
			operation{1, "Store", "Put, up to 8 MiB"}, operation{1, "Jobs", "Get"},
		), map[string]float64{
			// The acceptance looks for a worker. Wake looks once in half a minute.
			"GetItem": 1, "UpdateItem": 1, "SendMessage": 1,
		}},
		{"status", append(authenticated, operation{1, "Jobs", "Get"}), nil},
		{"content", append(authenticated, operation{1, "Jobs", "Get"}, operation{1, "Store", "Open"}), nil},
		{"upload", append(counted, operation{1, "Store", "Put, up to 8 MiB"}, operation{1, "Files", "Create"}), nil},
		{"signed-upload", append(counted,
			operation{1, "Files", "Create of a promise"}, operation{1, "Files", "PendingUpload"},
			operation{1, "Store", "Arrival"},
			operation{1, "Store", "Open"}, operation{1, "Files", "Finalize"},
		), map[string]float64{"PUT": 1}},
		{"completion", append(counted, operation{1, "Rates", "Take, in use"}, operation{1, "Rates", "Take, in use"},
			operation{1, "Budgets", "Budgets"}, operation{1, "Usage", "Add"}), nil},
		{"stream", append(counted, operation{1, "Rates", "Take, in use"}, operation{1, "Rates", "Take, in use"},
			operation{1, "Budgets", "Budgets"}, operation{1, "Usage", "Add"}), nil},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			s, ok := kept(t).Scenario(c.scenario)
			if !ok {
				t.Fatal("it was not counted: " + again)
			}
			want := map[string]float64{}
			for call, n := range c.others {
				want[call] += n
			}
			for _, o := range c.operations {
				calls, ok := awstest.Documented(t, o.of)[o.called]
				if !ok {
					t.Fatalf("docs/aws-calls.md has no %s.%s", o.of, o.called)
				}
				for call, n := range parse(t, calls) {
					want[call] += float64(o.times) * n
				}
			}
			got := map[string]float64{}
			for call, n := range s.Calls {
				_, name, _ := strings.Cut(call, ".")
				got[name] += n
			}
			for call := range want {
				// A name whose rate is not in use takes one write fewer, and so does a wake within
				// a minute of the last. An edit that takes long, as on a machine with other load,
				// records its progress; jobs that come slowly find a wake of half a minute ago, which
				// asks the queues too. What is read of the lane's backlog is known for some seconds,
				// which jobs that come quickly share.
				slack := map[string]float64{"UpdateItem": 2, "GetItem": 1, "BatchGetItem": 2, "GetQueueAttributes": 1}[call]
				if math.Abs(got[call]-want[call]) > slack {
					t.Errorf("%s: counted %g, documented %g: %s", call, got[call], want[call], again)
				}
				delete(got, call)
			}
			// Then it extends its lease too.
			for _, call := range []string{"ChangeMessageVisibility", "DescribeServices"} {
				if got[call] <= 1 {
					delete(got, call)
				}
			}
			if len(got) > 0 {
				t.Errorf("counted and not documented: %v: %s", got, again)
			}
		})
	}
}

// parse reads calls as the page writes them, for example "GetItem, 2 UpdateItem". Calls
// of S3 are distinguished by their method alone.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	calls := map[string]float64{}
	for part := range strings.SplitSeq(text, ", ") {
		n := 1.0
		if count, name, found := strings.Cut(part, " "); found {
			var err error
			if n, err = strconv.ParseFloat(count, 64); err != nil {
				t.Fatalf("the calls %q", text)
			}
			part = name
		}
		if method, ok := map[string]string{"PutObject": "PUT", "GetObject": "GET", "HeadObject": "HEAD"}[part]; ok {
			part = method
		}
		calls[part] += n
	}
	return calls
}

// Some sums that were computed by hand.
func TestDollars(t *testing.T) {
	for _, c := range []struct {
		quantities  awscost.Quantities
		list, above float64
	}{
		{awscost.Quantities{awscost.Transition: 4000}, 0.10, 0},
		{awscost.Quantities{awscost.Transition: 8000, awscost.APIRequest: 1000}, 0.2035, 0.1035},
		{awscost.Quantities{awscost.WriteUnit: 2e6, awscost.ReadUnit: 1e6}, 1.375, 1.375},
		{awscost.Quantities{awscost.AlarmMetric: 12, awscost.Dashboard: 1}, 4.2, 0.2},
		{awscost.Quantities{awscost.LogByte: 6e9}, 3, 0.5},
	} {
		if got := c.quantities.Dollars(); math.Abs(got-c.list) > 1e-9 {
			t.Errorf("%v: $%g, want $%g", c.quantities, got, c.list)
		}
		if got := c.quantities.DollarsAboveFree(); math.Abs(got-c.above) > 1e-9 {
			t.Errorf("%v beyond the free tier: $%g, want $%g", c.quantities, got, c.above)
		}
	}
}
