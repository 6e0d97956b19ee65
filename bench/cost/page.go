package cost

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
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
|---|---|`, Region, AsOf)
	for _, v := range volumes {
		if s, ok := c.Scenario(v.scenario); ok {
			p.line("| %s %s | **%s** |", grouped(v.count), s.Title, money(v.count*s.Quantities.Dollars()))
		}
	}
	p.line("| an idle month of the default stack | **%s**, of which %s is beyond the free tier |", money(c.IdleMonth().Dollars()),
		money(c.IdleMonth().DollarsAboveFree()))
	p.line("| an idle month of `realtime=true`, in addition | **%s** |", money(c.Realtime.Dollars()))
	p.line("| an hour of a preview worker | **%s** |\n", money(c.WorkerHour.Dollars()))

	job := c.Per1000Jobs()
	s, _ := c.Scenario("job")
	transitions := 1000 * dollars(Transition, s.Quantities[Transition])
	verdict := "It is met"
	if job > JobBar {
		verdict = "It is **missed**"
	}
	each := 1000 * c.WorkMinute.Dollars()
	p.line(`**The bar.** The control plane of 1,000 video jobs may cost at most $%.2f, from submission to their
end, with a prompt of 1 KB and logs included; clients' polls and downloads are priced separately.
%s: $%.4f. The transitions are $%.4f of it. The worker writes a result before it tells
the execution, which saves one. To save the others, a submission would have to write to the queue itself. Then
nothing would end a job whose worker dies.
`, JobBar, verdict, job, transitions)
	p.line(`The measured clip is edited within seconds. Each minute of an engine's work adds $%.4f for 1,000 jobs,
for progress and leases (below), so jobs reach the bar after %.1f minutes of work.`,
		each, max(0, JobBar-job)/each)
}

// scenarios writes what one of each thing uses.
func (p *page) scenarios(c Counts) {
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
		"job": {`The clip is part of the request. Each KB of a prompt beyond the first takes one more write unit in
the job's record, and two where it is written in a transaction. What the worker uses while it works is
below. The start of an execution invokes ` + "`wake`" + ` by an AWS event, which is free. What a job did cost is
written to the usage with its result: four write units in one transaction, where the result alone takes one.`,
			`Each budget that a job takes from takes up to 8 write units: **%s for 1,000** jobs.`},
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
			followed := 60 * 1000 * dollars(FunctionTime, float64(s.Functions[0].Memory)/1024)
			line = fmt.Sprintf(line, s.Functions[0].Memory, money(followed), followed/(30*1000*s.Quantities.Dollars()))
		case s.Name == "content":
			line = fmt.Sprintf(line, priceOf(StreamedByteExtra).Dollars, money(priceOf(TransferOut).Dollars))
		case strings.Contains(line, "each second"):
			line = fmt.Sprintf(line, money(1e6*dollars(FunctionTime, float64(s.Functions[0].Memory)/1024)))
		case strings.Contains(line, "budget that a job"):
			line = fmt.Sprintf(line, money(1000*dollars(WriteUnit, 8)))
		case strings.Contains(line, "budget"):
			line = fmt.Sprintf(line, money(1e6*dollars(WriteUnit, 1)))
		case strings.Contains(line, "%d"):
			line = fmt.Sprintf(line, s.Metrics, money(dollars(CustomMetric, float64(s.Metrics))))
		}
		p.line("\n%s", softBreak.ReplaceAllString(line, "$1 $2"))
	}
}

func (p *page) work(c Counts) {
	p.line(`
## Workers

The default worker edits on the processor, and scales to zero: it starts when jobs arrive, and stops after
ten minutes without one. An hour of one worker, with its periodic calls (its heartbeat, and polls for work):

| Item | An hour | Costs |
|---|---:|---:|`)
	p.items(c.WorkerHour, 1)
	p.line("| **all** | | **%s** |\n", money(c.WorkerHour.Dollars()))
	p.line(`Each minute of an engine's work adds, for progress and leases:

| Item | A minute | 1,000 minutes |
|---|---:|---:|`)
	p.items(c.WorkMinute, 1000)
	p.line("| **all** | | **%s** |\n", money(1000*c.WorkMinute.Dollars()))
	const smokeMinutes = 2
	p.line("A deploy that changes the workers runs one task of them for a minute or two, and the function `smoke` "+
		"beside it: %s at most.\n", money(smokeMinutes*(c.WorkerHour.Dollars()/60+60*dollars(FunctionTime, 0.25))))
	p.line("Storage costs %s for each GB and month. Inputs and results are deleted after two days.",
		money(priceOf(BlobMonth).Dollars))
}

func (p *page) stands(c Counts) {
	p.line(`
## Fixed costs

### A month of the default stack without calls

| Item | A month | Costs | Beyond the free tier |
|---|---:|---:|---:|`)
	idle := c.IdleMonth()
	for _, item := range sorted(idle) {
		n := idle[item]
		p.line("| %s | %s | %s | %s |", item, amount(n), money(dollars(item, n)),
			money(Quantities{item: n}.DollarsAboveFree()))
	}
	p.line("| **all** | | **%s** | **%s** |\n", money(idle.Dollars()), money(idle.DollarsAboveFree()))
	look, _ := c.Scenario(lookScenario)
	p.line(`The %d alarms are billed by their %s metrics: an alarm on an expression counts each metric in it.
`+"`-c watch=off`"+` omits them; `+"`-c watch=all`"+` adds a dashboard ($3.00) and second alarms. Two metrics are made of logs
and billed by the hour in which something was counted ($0.30 each for a whole month of such hours). The function
`+"`scale`"+` runs %s times a month, each time for %s ms with %d MB, and calls %s. Lambda polls SQS for the dead-letter queues of jobs and the queue of webhooks: five pollers each, 20 s at a time. There is no
NAT gateway and no customer-managed key, the VPC endpoints are free, and no container runs. Costs that depend
on what is stored are not included: the worker's image in ECR ($0.10 for each GB), records ($0.25 for each
GB, and $0.20 for their point-in-time recovery), logs ($0.03).`,
		c.Alarms, amount(c.Idle[AlarmMetric]), amount(c.Looks), amount(look.Functions[0].Billed), look.Functions[0].Memory,
		callList(look.Calls))
	p.line(`
### A month of realtime=true, in addition

| Item | A month | Costs |
|---|---:|---:|`)
	p.items(c.Realtime, 1)
	p.line("| **all** | | **%s** |", money(c.Realtime.Dollars()))
	p.line(`
One task runs, behind a load balancer in two zones, each with a public address. Clients that wait for a session
cost half a cent an hour for each account and instance, however many wait. The balancer's capacity
units ($0.008 an hour each) depend on the traffic. ` + "`ingest=fargate`" + ` has the same task and balancer, and no
lease.`)
	p.live()
	p.line(`
### A month of gpu=true, in addition

A NAT gateway ($0.045 an hour) with its address ($0.005) is %s a month, and $0.045 for each GB through it;
weights, blobs and the layers of images bypass it. Container Insights writes a few metrics of the cluster ($0.30
each for a whole month). An hour of an instance is the price of its type, on demand or spot, and $0.0753 for its
disk of 500 GB ($0.08 for each GB and month) with 500 MB/s ($0.04 for each above 125). A lane's workers write to 7
custom metrics ($0.30 each for a whole month, for the hours in which workers run); preview workers do too. Weights
are $0.023 for each GB and month. None of these figures is counted: they are read from the definition of the stack.`,
		money(natMonth))
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
	stream := dollars(TransferOut, liveBitrate/8*3600/1e9)
	codec := dollars(ContainerCPU, liveShare)
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
		money(dollars(PublicAddress, 1)), money(stream), money(stream), 100*liveShare, money(codec),
		money(dollars(ContainerCPU, 1)+dollars(ContainerMemory, 2)+dollars(PublicAddress, 1)+dollars(ContainerDisk, 1)))
}

func (p *page) prices() {
	p.line(`
## The prices

First tier of volume, on demand, looked up in %s. The pages are below <https://aws.amazon.com/>. Every request
to a lane's queue is priced as one to a fair queue, and the start and the end of an execution as transitions:
it cannot cost more than that. The free amounts are for every month without an end; those for new accounts are
left out.

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
