package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

// service is the service's own parts, put together as the programs of a deploy do. What the
// functions have beside their caches is here; instances are made of it.
type service struct {
	client   *dynamodb.Client
	keys     *dynamo.Keys
	tiers    credential.Tiers
	budgets  *dynamo.Budgets
	runs     *dynamo.Runs
	files    *dynamo.Files
	machine  *stepfn.Machine
	lengths  *sqsqueue.Lengths
	queue    *sqsqueue.Queue
	workers  *dynamo.Workers
	usage    *dynamo.Usage
	sessions *dynamo.Sessions
	fleet    *fleet.Fleet
}

// The URLs of the queues.
var queueURLs = map[job.Lane]string{job.VideoLane: "video", job.ImageLane: "image"}

func (w *World) newService() (*service, error) {
	config, now := w.cloud.Config(), w.clock.Now
	client := dynamo.NewClient(config)
	s := &service{
		client: client, keys: dynamo.NewKeys(client, "credentials", "usage"), files: dynamo.NewFiles(client, "files"),
		workers: dynamo.NewWorkers(client, "jobs", now), usage: dynamo.NewUsage(client, "usage"),
		sessions: dynamo.NewSessions(client, "sessions"), lengths: sqsqueue.NewLengths(config, queueURLs),
		budgets: dynamo.NewBudgets(client, "usage", machine{w.clock}, w.newID),
		machine: stepfn.NewMachine(config, "arn:aws:states:us-east-1:0:stateMachine:jobs", queueURLs),
	}
	s.runs = dynamo.NewRuns(client, "jobs").CountIn(s.usage).HoldIn(s.budgets)
	s.queue = sqsqueue.New(sqsqueue.Config{
		AWS: config, URLs: queueURLs, Jobs: s.runs, Tasks: stepfn.NewTasks(config), Now: now,
		Logger: slog.New(slog.DiscardHandler),
	})
	s.fleet = &fleet.Fleet{
		Stamps: dynamo.NewFleetStamps(client, "jobs"), Lengths: s.lengths, Service: w.containers, Now: now, Rules: w.rules,
	}
	var err error
	if s.tiers, err = w.makeAccounts(s.keys, s.budgets); err != nil {
		return nil, err
	}
	return s, nil
}

// dispatcher hands jobs over as the functions do: then it looks whether a worker runs.
type dispatcher struct {
	*stepfn.Machine
	workers *dynamo.Workers
}

// Dispatch implements dynamo.Dispatcher.
func (d dispatcher) Dispatch(ctx context.Context, j job.Job, open dynamo.OpenEntry) error {
	if err := d.Machine.Dispatch(ctx, j, open); err != nil {
		return err
	}
	_, _ = d.workers.Warm(ctx, j.Lane) // a failure only delays a wake
	return nil
}

// budgeted is the part of accounts that have a budget of jobs for a day.
const budgeted = 4

// unlimited is the account that has no limit of open jobs: the second in size.
const unlimited = 1

// makeAccounts creates the keys and budgets of the accounts, and returns their tiers: what
// an account needs at the peak, four times over, and the default's limit of open jobs or
// as many as its videos need.
func (w *World) makeAccounts(keys *dynamo.Keys, budgets *dynamo.Budgets) (credential.Tiers, error) {
	ctx := context.Background()
	tiers := credential.DefaultTiers()
	from := audit.Operator(w.clock.Now())
	for i, a := range w.accounts {
		tier := tiers[credential.DefaultTier]
		peak := rate(float64(w.Jobs)*a.Share, peakAt)
		tier.Name = fmt.Sprintf("tier-%04d", i)
		tier.RequestsPerSecond = max(tier.RequestsPerSecond, 4*peak)
		tier.Burst = max(tier.Burst, int(4*tier.RequestsPerSecond))
		tier.PendingJobs = max(tier.PendingJobs, int(peak*videos*3*meanVideoWork.Seconds()))
		if i == unlimited {
			tier.PendingJobs = 0
		}
		// What is stored here has no bytes; its sum is counted, and never too much.
		tier.StoredBytes, tier.Uploads = 1e18, 1e9
		tier.RealtimeSessions = max(tier.RealtimeSessions, int(4*peak*sessionsEach*sessionLength.Seconds()))
		tiers[tier.Name] = tier
		w.sessionLimits[a.Name] = tier.RealtimeSessions
		a.tier = tier.Name
		key, err := credential.NewKey(a.secret, a.Name, a.tier, "", w.clock.Now())
		if err != nil {
			return nil, err
		}
		if err := keys.CreateKey(ctx, from, key); err != nil {
			return nil, err
		}
		if i%budgeted != 0 {
			continue
		}
		one := budget.Budget{ID: budget.ID{Account: a.Name, Period: budget.Day, Unit: budget.Jobs}, Limit: 1e12}
		if err := budgets.Set(ctx, from, one); err != nil {
			return nil, err
		}
	}
	return tiers, nil
}

// request is what a job asks for.
func request(kind catalog.Kind, blob string) job.Request {
	return job.Request{
		Prompt:  "Make it look like a rainy evening in a city of neon lights, filmed from a moving tram",
		Options: map[string]any{"resolution": "720p"},
		Inputs: map[string]job.Input{"data": {
			Blob: blob, Name: "clip." + string(kind), MIME: "video/mp4", Size: 9_876_543,
			MD5: "d41d8cd98f00b204e9800998ecf8427e",
		}},
	}
}

// randomBytes reads from a source of numbers, so that ids follow from the seed.
type randomBytes struct{ random *rand.Rand }

func (r randomBytes) Read(p []byte) (int, error) {
	var word [8]byte
	for i := range p {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], r.random.Uint64())
		}
		p[i] = word[i%8]
	}
	return len(p), nil
}

// newID returns a text that no other call returns.
func (w *World) newID() string {
	w.ids++
	return fmt.Sprintf("id%024d", w.ids)
}
