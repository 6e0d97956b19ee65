// Package cost counts what the service uses in AWS. It runs the functions and the worker
// against a local AWS and counts their calls on the wire; what an idle deploy uses is
// counted from its template. shared/app/awscost keeps the counts and prices them, and
// docs/cost.md is generated from that.
package cost

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cutroom/shared/app/awscost"
)

// volumes are the numbers of each thing for which the page shows the cost.
var volumes = []struct {
	scenario string
	count    float64
}{
	{"job", 1000}, {"status", 1000}, {"content", 1000}, {"image", 1000}, {"upload", 1000}, {"signed-upload", 1000},
	{"completion", 1e6}, {"stream", 1e6},
}

// page is the page while it is written.
type page struct{ strings.Builder }

// softBreak matches a line break within a paragraph. Headings and rows of tables have
// lines of their own.
var softBreak = regexp.MustCompile("([^\n|])\n([^\n|#])")

// line writes Markdown with one paragraph on each line, however the format wraps it.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, softBreak.ReplaceAllString(format, "$1 $2")+"\n", args...)
}

// Page returns the text of docs/cost.md.
func Page(c awscost.Counts) string {
	p := &page{}
	p.head(c)
	p.scenarios(c)
	p.work(c)
	p.months(c)
	p.stands(c)
	p.prices()
	return p.String()
}

func (p *page) head(c awscost.Counts) {
	p.line(`# What it costs

What the service costs in AWS at list price, in US dollars, in %s, as of %s. Nothing here is a bill:
the figures are counted calls and measured times, multiplied by list prices.

A program makes this page (`+"`go run ./bench/costpage`"+`). It runs the functions, as they are deployed,
and a worker against a local AWS, counts their calls on the wire, and computes DynamoDB's units from the
sizes of the records that each call reads or changes. The histories of the executions supply the
transitions and calls of the state machine. The log is what the programs write, what Lambda writes for
each invocation, and the API's access log. Fixed costs are counted from the template. The free tier is
left out, except in the column for it. Every request uses another key, so no key is cached, as with
callers who come seldom.

| What | Costs |
|---|---|`, awscost.Region, awscost.AsOf)
	for _, v := range volumes {
		if s, ok := c.Scenario(v.scenario); ok {
			p.line("| %s %s | **%s** |", awscost.Grouped(v.count), s.Title, awscost.Money(v.count*s.Quantities.Dollars()))
		}
	}
	p.line("| an idle month of the default stack | **%s**, of which %s is beyond the free tier |",
		awscost.Money(c.IdleMonth().Dollars()), awscost.Money(c.IdleMonth().DollarsAboveFree()))
	p.line("| an idle month of `realtime=true`, in addition | **%s** |", awscost.Money(c.Realtime.Dollars()))
	p.line("| an hour of a preview worker | **%s** |\n", awscost.Money(c.WorkerHour.Dollars()))

	job := c.Per1000Jobs()
	s, _ := c.Scenario("job")
	transitions := 1000 * awscost.Dollars(awscost.Transition, s.Quantities[awscost.Transition])
	verdict := "It is met"
	if job > awscost.JobBar {
		verdict = "It is **missed**"
	}
	each := 1000 * c.WorkMinute.Dollars()
	p.line(`**The bar.** The control plane of 1,000 video jobs may cost at most $%.2f, from submission to their
end, with a prompt of 1 KB and logs included; clients' polls and downloads are priced separately.
%s: $%.4f. The transitions are $%.4f of it. The worker writes a result before it tells
the execution, which saves one. To save the others, a submission would have to write to the queue itself. Then
nothing would end a job whose worker dies.
`, awscost.JobBar, verdict, job, transitions)
	p.line(`The measured clip is edited within seconds. Each minute of an engine's work adds $%.4f for 1,000 jobs,
for progress and leases (below), so jobs reach the bar after %.1f minutes of work.`,
		each, max(0, awscost.JobBar-job)/each)
}

// scenarios writes what one of each thing uses.
func (p *page) scenarios(c awscost.Counts) {
	p.line(`
## What each thing costs

A function's time is the median under the Lambda Runtime API on a machine with two processors and other
load, in front of an AWS that answers within about a millisecond. In AWS a call takes some milliseconds,
a start adds what ` + "`make bench`" + ` shows, and a smaller share of a processor makes work slower. A
function that takes ten times as long costs ten times its share here, which is small.`)
	for _, v := range volumes {
		s, ok := c.Scenario(v.scenario)
		if !ok {
			continue
		}
		p.line("\n### %s\n", sentence(s.Title))
		p.line("| Item | For one | For %s |\n|---|---:|---:|", awscost.Grouped(v.count))
		p.items(s.Quantities, v.count)
		p.line("| **all** | | **%s** |\n", awscost.Money(v.count*s.Quantities.Dollars()))
		var invocations []string
		for _, i := range s.Functions {
			invocations = append(invocations, fmt.Sprintf("`%s` for %g ms with %d MB", i.Function, i.Billed, i.Memory))
		}
		p.line("Functions: %s. Calls: %s.", strings.Join(invocations, ", "), callList(s.Calls))
		p.remark(s)
	}
}

// remark returns what is special about a scenario.
func (p *page) remark(s awscost.Scenario) {
	for _, line := range map[string][]string{
		"job": {`The clip is part of the request. Each KB of a prompt beyond the first takes one more write unit in
the job's record, and two where it is written in a transaction. What the worker uses while it works is
below. The start of an execution invokes ` + "`wake`" + ` by an AWS event, which is free. What a job did cost is
written to the usage with its result: four write units in one transaction, where the result alone takes one.`,
			`Each budget that a job takes from takes up to 8 write units, and two read units to see whether a
warning is due: **%s for 1,000** jobs.`},
		"status": {`Following a job's events takes a function of %d MB while the stream is open: %s for 1,000 minutes,
%.0f times as much as reading the status every 2 s.`},
		"content": {`API Gateway counts each 10 MB of a streamed answer as a request, and Lambda charges $%.3f for each GB
that an answer streams above 6 MB. Data to the Internet costs %s for each GB, whichever service sends it.
The time is for a result that fits in one read; a slow client keeps the function busy for as long as it
reads.`},
		"image": {`The function waits for the worker and reads the job's record repeatedly. Its time and its reads
depend on how long the edit takes, here on a machine with other load.`},
		"upload":        {"Up to 8 MiB is one PUT. A larger file takes one for each 8 MiB, and two more."},
		"signed-upload": {"The client uploads the bytes to the bucket itself, with one PUT for any size."},
		"completion": {
			`The model is the built-in one, which answers at once. While a model server answers, the function
waits: **%s for each second** of a million completions. The model servers themselves are not included.`,
			"It writes to %d custom metrics for each route and model, which cost %s a month if they are used.",
			`Each budget that applies takes one write unit more: **%s for a million** of completions. The four of each
share, which is for 16 calls while much is left, come to a quarter of that.`,
		},
		"stream": {"It writes to one more custom metric: the time to the first token."},
	}[s.Name] {
		switch {
		case s.Name == "status":
			followed := 60 * 1000 * awscost.Dollars(awscost.FunctionTime, float64(s.Functions[0].Memory)/1024)
			line = fmt.Sprintf(line, s.Functions[0].Memory, awscost.Money(followed), followed/(30*1000*s.Quantities.Dollars()))
		case s.Name == "content":
			line = fmt.Sprintf(line, awscost.PriceOf(awscost.StreamedByteExtra).Dollars,
				awscost.Money(awscost.PriceOf(awscost.TransferOut).Dollars))
		case strings.Contains(line, "each second"):
			line = fmt.Sprintf(line, awscost.Money(1e6*awscost.Dollars(awscost.FunctionTime, float64(s.Functions[0].Memory)/1024)))
		case strings.Contains(line, "budget that a job"):
			line = fmt.Sprintf(line,
				awscost.Money(1000*(awscost.Dollars(awscost.WriteUnit, 8)+awscost.Dollars(awscost.ReadUnit, 2))))
		case strings.Contains(line, "budget"):
			line = fmt.Sprintf(line, awscost.Money(1e6*awscost.Dollars(awscost.WriteUnit, 1)))
		case strings.Contains(line, "%d"):
			line = fmt.Sprintf(line, s.Metrics, awscost.Money(awscost.Dollars(awscost.CustomMetric, float64(s.Metrics))))
		}
		p.line("\n%s", softBreak.ReplaceAllString(line, "$1 $2"))
	}
}

func (p *page) work(c awscost.Counts) {
	p.line(`
## Workers

The default worker edits on the processor, and scales to zero: it starts when jobs arrive, and stops after
ten minutes without one. An hour of one worker, with its periodic calls (its heartbeat, and polls for work):

| Item | An hour | Costs |
|---|---:|---:|`)
	p.items(c.WorkerHour, 1)
	p.line("| **all** | | **%s** |\n", awscost.Money(c.WorkerHour.Dollars()))
	p.line(`Each minute of an engine's work adds, for progress and leases:

| Item | A minute | 1,000 minutes |
|---|---:|---:|`)
	p.items(c.WorkMinute, 1000)
	p.line("| **all** | | **%s** |\n", awscost.Money(1000*c.WorkMinute.Dollars()))
	const smokeMinutes = 2
	p.line("A deploy that changes the workers runs one task of them for a minute or two, and the function `smoke` "+
		"beside it: %s at most.\n", awscost.Money(
		smokeMinutes*(c.WorkerHour.Dollars()/60+60*awscost.Dollars(awscost.FunctionTime, 0.25))))
	p.line("Storage costs %s for each GB and month. Inputs and results are deleted after two days.",
		awscost.Money(awscost.PriceOf(awscost.BlobMonth).Dollars))
}

func (p *page) stands(c awscost.Counts) {
	p.line(`
## Fixed costs

### A month of the default stack without calls

| Item | A month | Costs | Beyond the free tier |
|---|---:|---:|---:|`)
	idle := c.IdleMonth()
	for _, item := range awscost.Sorted(idle) {
		n := idle[item]
		p.line("| %s | %s | %s | %s |", item, awscost.Amount(n), awscost.Money(awscost.Dollars(item, n)),
			awscost.Money(awscost.Quantities{item: n}.DollarsAboveFree()))
	}
	p.line("| **all** | | **%s** | **%s** |\n", awscost.Money(idle.Dollars()), awscost.Money(idle.DollarsAboveFree()))
	look, _ := c.Scenario(awscost.LookScenario)
	p.line(`The %d alarms are billed by their %s metrics: an alarm on an expression counts each metric in it.
`+"`-c watch=off`"+` omits them; `+"`-c watch=all`"+` adds a dashboard ($3.00) and second alarms. Two metrics are made of logs
and billed by the hour in which something was counted ($0.30 each for a whole month of such hours). The function
`+"`scale`"+` runs %s times a month, each time for %s ms with %d MB, and calls %s. The function `+"`steps`"+` looks every five minutes for batches that wait, which is three reads, and is priced as 30 ms with 1 GB. Lambda polls SQS for the dead-letter queues of jobs and the queue of webhooks: five pollers each, 20 s at a time. There is no
NAT gateway and no customer-managed key, the VPC endpoints are free, and no container runs. Costs that depend
on what is stored are not included: the worker's image in ECR ($0.10 for each GB), records ($0.25 for each
GB, and $0.20 for their point-in-time recovery), logs ($0.03).`,
		c.Alarms, awscost.Amount(c.Idle[awscost.AlarmMetric]), awscost.Amount(c.Looks),
		awscost.Amount(look.Functions[0].Billed), look.Functions[0].Memory,
		callList(look.Calls))
	p.line(`
### A month of realtime=true, in addition

| Item | A month | Costs |
|---|---:|---:|`)
	p.items(c.Realtime, 1)
	p.line("| **all** | | **%s** |", awscost.Money(c.Realtime.Dollars()))
	p.line(`
One task runs, behind a load balancer in two zones, each with a public address. Clients that wait for a session
cost half a cent an hour for each account and instance, however many wait. The balancer's capacity
units ($0.008 an hour each) depend on the traffic. ` + "`ingest=fargate`" + ` has the same task and balancer, and no
lease.`)
	p.live()
	p.line(`
### A month of gpu=true, in addition

A NAT gateway ($0.045 an hour) with its address ($0.005) is %s a month, and $0.045 for each GB through it;
weights, blobs and the layers of images bypass it. The secret with the identity that signs results is %s, and there
is none with `+"`c2pa=off`"+`; `+"`c2pa=on`"+` adds one to preview workers. Container Insights writes a few metrics of the cluster ($0.30
each for a whole month). An hour of an instance is the price of its type, on demand or spot, and $0.0753 for its
disk of 500 GB ($0.08 for each GB and month) with 500 MB/s ($0.04 for each above 125). A lane's workers write to 7
custom metrics ($0.30 each for a whole month, for the hours in which workers run); preview workers do too. Weights
are $0.023 for each GB and month. None of these figures is counted: they are read from the definition of the stack.`,
		awscost.Money(natMonth), awscost.Sums(awscost.Dollars(awscost.Secret, 1)))
}

const (
	// liveBitrate is what a stream of live video takes each way, in bit/s.
	liveBitrate = 1e6
	// liveShare is how much of a processor decoding and encoding 25 frames of 640x360 a
	// second takes: 3.7 ms each (`make bench`, section codec).
	liveShare = 25 * 0.0037
)

// live writes what streams of live video cost.
func (p *page) live() {
	stream := awscost.Dollars(awscost.TransferOut, liveBitrate/8*3600/1e9)
	codec := awscost.Dollars(awscost.ContainerCPU, liveShare)
	p.line(`
### Live video

`+"`webrtc=true`"+` adds nothing to an idle month of `+"`realtime=true`"+`: media comes to the public address (%s an
hour) that each task has anyway, past the balancer. What streams take:

| An hour of | Costs |
|---|---:|
| a stream of 1 Mbit/s to a client, 0.45 GB to the Internet | %s |
| each viewer of it, as much again | %s |
| its codec at 640x360 and 25 frames a second, %.0f %% of a vCPU of a task that runs anyway | %s |

What comes in is free. The server sends between 0.15 and 2.5 Mbit/s, as the client's network takes it. 1280x720 takes
three times the processor, and the preview engine's looks up to a whole one; at 100 %% of its vCPU a task drops
frames, so what a session costs is mostly how few share a task: %s an hour for a task, with its address and disk. A
relay of your own costs its machine, and the transfer once more.`,
		awscost.Money(awscost.Dollars(awscost.PublicAddress, 1)), awscost.Money(stream), awscost.Money(stream), 100*liveShare, awscost.Money(codec),
		awscost.Money(awscost.Dollars(awscost.ContainerCPU, 1)+awscost.Dollars(awscost.ContainerMemory, 2)+awscost.Dollars(awscost.PublicAddress, 1)+awscost.Dollars(awscost.ContainerDisk, 1)))
}

func (p *page) prices() {
	p.line(`
## The prices

First tier of volume, on demand, looked up in %s. The pages are below <https://aws.amazon.com/>. Every request
to a lane's queue is priced as one to a fair queue, and the start and the end of an execution as transitions:
it cannot cost more than that. The free amounts are for every month without an end; those for new accounts are
left out.

| Item | Price | Free a month | Page |
|---|---:|---:|---|`, awscost.AsOf)
	for _, price := range awscost.Prices() {
		per := ""
		if price.Per > 1 {
			per = " for " + awscost.Grouped(price.Per)
		}
		free := ""
		if price.Free > 0 {
			free = awscost.Grouped(price.Free)
		}
		p.line("| %s | $%s%s | %s | %s |", price.Item, awscost.Number(price.Dollars), per, free, price.Page)
	}
}

// months writes what whole months cost, by part.
func (p *page) months(c awscost.Counts) {
	u := awscost.UsualUse(0, 0)
	p.line(`
## The sum of a month

What a month costs in all, by part, and what is free in every month taken off in the last row. Your own numbers:
`+"`cutroom cost --jobs 1e5 --seconds 30 --completions 1e6`"+`. Assumed here: a worker takes %s s for a job, whose
inputs and result have %s MB each; a client reads its status %s times and downloads the result once; a model server
takes %s s for a completion, while a function waits. Jobs come evenly, so that what is seldom used keeps one worker
awake for ten minutes after each; waves take more workers for as long. It is the first tier of prices throughout,
though AWS charges less for very large amounts. Engine and model servers of your own are not included
(`+"`--worker-hour`"+` has the price of an hour of a worker), nor are stored records and logs.`,
		awscost.Number(u.Seconds), awscost.Number(u.ResultMB), awscost.Number(u.Polls), awscost.Number(u.WaitSeconds))
	p.monthTable("video jobs", c, awscost.UsualUse(1e3, 0), awscost.UsualUse(1e5, 0), awscost.UsualUse(1e7, 0))
	p.monthTable("chat completions", c, awscost.UsualUse(0, 1e6), awscost.UsualUse(0, 1e9))
}

// monthTable writes the parts of months, which differ in their volumes alone.
func (p *page) monthTable(title string, c awscost.Counts, uses ...awscost.Use) {
	var sums []awscost.Sum
	head, rule := "| Part |", "|---|"
	for _, u := range uses {
		sums = append(sums, c.Month(u))
		head += fmt.Sprintf(" %s %s |", awscost.Grouped(u.Jobs+u.Completions), title)
		rule += "---:|"
	}
	p.line("\n%s", head)
	p.line("%s", rule)
	row := func(name string, of func(awscost.Sum) float64) {
		text := "| " + name + " |"
		for _, sum := range sums {
			text += " " + awscost.Sums(of(sum)) + " |"
		}
		p.line("%s", text)
	}
	for i, part := range sums[0].Parts {
		row(part.Name, func(s awscost.Sum) float64 { return s.Parts[i].Dollars })
	}
	row("**all**", func(s awscost.Sum) float64 { return s.Total })
	row("beyond the free tier", func(s awscost.Sum) float64 { return s.AboveFree })
	if sums[0].Use.Jobs > 0 {
		text := "| workers at once, on average |"
		for _, sum := range sums {
			text += " " + awscost.Amount(sum.WorkersAtOnce) + " |"
		}
		p.line("%s", text)
	}
}

// items writes rows of the quantities, the most expensive first.
func (p *page) items(q awscost.Quantities, times float64) {
	for _, item := range awscost.Sorted(q) {
		p.line("| %s | %s | %s |", item, awscost.Amount(q[item]), awscost.Money(awscost.Dollars(item, times*q[item])))
	}
}

// callList writes calls as "2 DynamoDB.Query, S3.GET".
func callList(calls map[string]float64) string {
	var list []string
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		text := "`" + call + "`"
		if n := calls[call]; n != 1 {
			text = awscost.Amount(n) + " " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// sentence begins a text with a capital.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
