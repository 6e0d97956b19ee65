package cost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// volumes are the numbers of each thing for which the page gives the cost.
var volumes = []struct {
	scenario string
	count    float64
}{
	{"job", 1000}, {"status", 1000}, {"content", 1000}, {"image", 1000}, {"upload", 1000}, {"signed-upload", 1000},
	{"completion", 1e6}, {"stream", 1e6},
}

// page is a page that is being written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Page writes docs/cost.md.
func Page(c Counts) string {
	p := &page{}
	p.head(c)
	p.scenarios(c)
	p.work(c)
	p.stands(c)
	p.prices()
	return p.String()
}

func (p *page) head(c Counts) {
	p.line(`# What it costs

What the service costs in AWS at list price, in US dollars, in %s, as of %s. Nothing here is a bill: it is what was counted, times what AWS says it takes.

A program makes this page (`+"`go run ./bench/costpage`"+`). It runs the functions, as they are deployed, and a worker against a local AWS, counts their calls on the wire, and computes DynamoDB's units from the sizes of the records that each call reads or changes. Transitions and calls of the state machine are those of the executions' histories. The log is what the programs wrote, what Lambda writes of each invocation, and the API's access log. What stands still is counted in the template. The free tier is left out unless a column has it. Every request is made with another key, so that none is known from the one before, as with callers who come seldom.

| What | Costs |
|---|---|`, Region, AsOf)
	for _, v := range volumes {
		if s, ok := c.Scenario(v.scenario); ok {
			p.line("| %s %s | **%s** |", grouped(v.count), s.Title, money(v.count*s.Quantities.Dollars()))
		}
	}
	p.line("| an idle month of the default stack | **%s**, of which %s is beyond the free tier |", money(c.Idle.Dollars()),
		money(c.Idle.DollarsAboveFree()))
	p.line("| an idle month of `realtime=true`, in addition | **%s** |", money(c.Realtime.Dollars()))
	p.line("| an hour of a preview worker | **%s** |\n", money(c.WorkerHour.Dollars()))

	job := c.Per1000Jobs()
	s, _ := c.Scenario("job")
	transitions := 1000 * dollars(Transition, s.Quantities[Transition])
	verdict := "It is met"
	if job > JobBar {
		verdict = "It is **missed**"
	}
	p.line("**The bar.** The control plane of 1,000 video jobs is to cost at most $%.2f, from submission to their end, with a prompt of 1 KB and logs included; clients' polls and downloads are priced apart. %s: $%.4f. The transitions are $%.4f of it. With fewer of them a submission would write to the queue itself and the worker would record the end, and nothing would be there that ends a job whose worker cannot.\n", JobBar, verdict, job, transitions)
	each := 1000 * c.WorkMinute.Dollars()
	p.line("The clip that was counted is edited within seconds. Each minute of an engine's work adds $%.4f for 1,000 jobs, for progress and leases (below), so that the bar is reached by jobs that are worked on for %.1f minutes.", each, max(0, JobBar-job)/each)
}

// scenarios tells what one of each thing takes.
func (p *page) scenarios(c Counts) {
	p.line(`
## What each takes

A function's time is the median under the Lambda Runtime API on a machine with two processors that did other things as well, in front of an AWS that answers within a millisecond or so. In AWS a call takes some milliseconds, a start adds what ` + "`make bench`" + ` shows, and a smaller share of a processor makes work slower: a function that takes ten times as long costs ten times the little that its time is here.`)
	for _, v := range volumes {
		s, ok := c.Scenario(v.scenario)
		if !ok {
			continue
		}
		p.line("\n### %s\n", sentence(s.Title))
		p.line("| Item | For one | For %s |\n|---|---:|---:|", grouped(v.count))
		p.items(s.Quantities, v.count)
		p.line("| **all** | | **%s** |\n", money(v.count*s.Quantities.Dollars()))
		var invocations []string
		for _, i := range s.Functions {
			invocations = append(invocations, fmt.Sprintf("`%s` for %g ms with %d MB", i.Function, i.Billed, i.Memory))
		}
		p.line("Functions: %s. Calls: %s.", strings.Join(invocations, ", "), callList(s.Calls))
		p.remark(s)
	}
}

// remark returns what is special about a scenario.
func (p *page) remark(s Scenario) {
	for _, line := range map[string][]string{
		"job": {"The clip comes with the request. A prompt beyond 1 KB is one write unit more for each KB in its record, and two as it is written in a transaction. What the worker takes while it works is below. Executions that begin start `wake` by an event of AWS, which is free."},
		"content": {
			"API Gateway counts each 10 MB of a streamed answer as a request, and Lambda takes $%.3f for each GB that an answer streams above 6 MB. What goes to the Internet is %s for each GB, whoever sends it. The time is for a result that fits in one read; a slow client keeps the function busy for as long as it reads.",
		},
		"image":         {"The function waits for the worker and reads the job's record again and again: its time and the reads follow from how long the edit takes, which was on a machine that does other things too."},
		"upload":        {"Up to 8 MiB is one PUT, what is larger one for each 8 MiB and two more."},
		"signed-upload": {"The client puts the bytes into the bucket itself. Of any size it is one PUT."},
		"completion": {
			"The model is the one that is built in and answers at once. While a model server answers, the function waits: **%s for each second** of a million completions. Model servers themselves are not in here.",
			"It fills %d custom metrics for each route and model, %s a month for those that are used.",
		},
		"stream": {"It fills one custom metric more: the time to the first token."},
	}[s.Name] {
		switch {
		case s.Name == "content":
			line = fmt.Sprintf(line, priceOf(StreamedByteExtra).Dollars, money(priceOf(TransferOut).Dollars))
		case strings.Contains(line, "each second"):
			line = fmt.Sprintf(line, money(1e6*dollars(FunctionTime, float64(s.Functions[0].Memory)/1024)))
		case strings.Contains(line, "%d"):
			line = fmt.Sprintf(line, s.Metrics, money(dollars(CustomMetric, float64(s.Metrics))))
		}
		p.line("\n%s", line)
	}
}

func (p *page) work(c Counts) {
	p.line(`
## What works

The default worker edits on the processor, from none: it is started when jobs come, and stopped when none came for ten minutes. An hour of one, with what it asks for by the clock (that it is there, and whether there is work):

| Item | An hour | Costs |
|---|---:|---:|`)
	p.items(c.WorkerHour, 1)
	p.line("| **all** | | **%s** |\n", money(c.WorkerHour.Dollars()))
	p.line(`Each minute in which an engine works takes in addition, for progress and leases:

| Item | A minute | 1,000 minutes |
|---|---:|---:|`)
	p.items(c.WorkMinute, 1000)
	p.line("| **all** | | **%s** |\n", money(1000*c.WorkMinute.Dollars()))
	p.line("What is stored: %s for each GB and month. Inputs and results go after two days.",
		money(priceOf(BlobMonth).Dollars))
}

func (p *page) stands(c Counts) {
	p.line(`
## What stands still

### A month of the default stack in which nobody calls

| Item | A month | Costs | Beyond the free tier |
|---|---:|---:|---:|`)
	for _, item := range sorted(c.Idle) {
		n := c.Idle[item]
		p.line("| %s | %s | %s | %s |", item, amount(n), money(dollars(item, n)),
			money(Quantities{item: n}.DollarsAboveFree()))
	}
	p.line("| **all** | | **%s** | **%s** |\n", money(c.Idle.Dollars()), money(c.Idle.DollarsAboveFree()))
	p.line("The %d alarms have %s metrics, by which they are billed: an alarm on an expression counts each metric in it. `-c watch=off` leaves the alarms and the dashboard out, but for those that scale the workers. SQS is asked by Lambda, for the dead-letter queues of jobs and the queue of webhooks: five pollers each, 20 s at a time. There is no NAT gateway and no key of one's own, endpoints of the network are free, and no container runs. Not counted is what depends on what was stored: the worker's image in ECR ($0.10 for each GB), records ($0.25 for each GB, and $0.20 for their point-in-time recovery), logs ($0.03).",
		c.Alarms, amount(c.Idle[AlarmMetric]))
	p.line(`
### A month of realtime=true, in addition

| Item | A month | Costs |
|---|---:|---:|`)
	p.items(c.Realtime, 1)
	p.line("| **all** | | **%s** |", money(c.Realtime.Dollars()))
	p.line("\nOne task runs, behind a balancer in two zones, each with an address. Its capacity units ($0.008 an hour each) come with traffic. `ingest=fargate` has the same task and balancer, and no lease.")
	p.line(`
### A month of gpu=true, in addition

A NAT gateway ($0.045 an hour) with its address ($0.005) is $36.50 a month, and $0.045 for each GB through it; weights, blobs and the layers of images go past it. Container Insights counts a few metrics of the cluster ($0.30 each for a whole month). An hour of an instance is its price for its type, on demand or spot, and $0.0753 for its disk of 500 GB ($0.08 for each GB and month) with 500 MB/s ($0.04 for each above 125). A lane's workers fill 7 custom metrics ($0.30 each for a whole month, for the hours in which there are any), which preview workers do too. Weights are $0.023 for each GB and month. None of it was counted: it is read off the description of the stack.`)
}

func (p *page) prices() {
	p.line(`
## The prices

First tier of volume, on demand, looked up in %s. The pages are below <https://aws.amazon.com/>. Every request to the queue of a lane is taken for one of a fair queue, and start and end of an execution for transitions: more than that it cannot be. What is free is so in every month for good; what new accounts have is left out.

| Item | Price | Free a month | Page |
|---|---:|---:|---|`, AsOf)
	for _, price := range Prices() {
		per := ""
		if price.Per > 1 {
			per = " for " + grouped(price.Per)
		}
		free := ""
		if price.Free > 0 {
			free = grouped(price.Free)
		}
		p.line("| %s | $%s%s | %s | %s |", price.Item, number(price.Dollars), per, free, price.Page)
	}
}

// items writes rows of the quantities, the most expensive first.
func (p *page) items(q Quantities, times float64) {
	for _, item := range sorted(q) {
		p.line("| %s | %s | %s |", item, amount(q[item]), money(dollars(item, times*q[item])))
	}
}

func sorted(q Quantities) []Item {
	return slices.SortedFunc(maps.Keys(q), func(a, b Item) int {
		return cmp.Or(cmp.Compare(dollars(b, q[b]), dollars(a, q[a])), cmp.Compare(a, b))
	})
}

// callList writes calls as "2 DynamoDB.Query, S3.GET".
func callList(calls map[string]float64) string {
	var list []string
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		text := "`" + call + "`"
		if n := calls[call]; n != 1 {
			text = amount(n) + " " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// amount formats a quantity without insignificant digits.
func amount(n float64) string {
	if n >= 1000 {
		return grouped(n)
	}
	return number(significant(n))
}

// number writes a number in full, never as 1e-05.
func number(n float64) string {
	text := fmt.Sprintf("%.8f", n)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// grouped writes a whole number with commas.
func grouped(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// sentence begins a text with a capital.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
