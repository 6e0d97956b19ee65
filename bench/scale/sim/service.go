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
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

// service holds the components that function instances share, assembled as in a deployment.
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

var (
	lanes     = []job.Lane{job.VideoLane, job.ImageLane}
	queueURLs = map[job.Lane]string{job.VideoLane: "video", job.ImageLane: "image"}
)

func (w *World) newService() error {
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
		Store: dynamo.NewFleetStore(client, "jobs"), Lengths: s.lengths, Service: w.containers, Now: now, Rules: w.rules,
	}
	w.service = s
	s.tiers = credential.DefaultTiers()
	for i, a := range w.accounts {
		if err := w.makeAccount(i, a); err != nil {
			return err
		}
	}
	return nil
}

// makeAccount creates an account's key, and a tier that allows four times the account's peak load.
// Every fourth account has a daily job budget. The second account has no limit on open jobs.
func (w *World) makeAccount(i int, a *account) error {
	ctx, from := context.Background(), audit.Operator(w.clock.Now())
	tier := w.service.tiers[credential.DefaultTier]
	peak := rate(float64(w.Jobs)*a.share, peakAt)
	tier.Name = fmt.Sprintf("tier-%04d", i)
	tier.RequestsPerSecond = max(tier.RequestsPerSecond, 4*peak)
	tier.Burst = max(tier.Burst, int(4*tier.RequestsPerSecond))
	tier.PendingJobs = max(tier.PendingJobs, int(peak*videos*3*meanVideoWork.Seconds()))
	if i == 1 {
		tier.PendingJobs = 0
	}
	tier.StoredBytes, tier.Uploads = 1e18, 1e9 // counted, but too high to be reached
	a.tier, a.sessions = tier.Name, max(tier.RealtimeSessions, int(4*peak*sessionsEach*sessionLength.Seconds()))
	w.service.tiers[tier.Name] = tier
	key, err := credential.NewKey(a.secret, a.name, a.tier, "", w.clock.Now())
	if err != nil {
		return err
	}
	if err := w.service.keys.CreateKey(ctx, from, key); err != nil || i%4 != 0 {
		return err
	}
	return w.service.budgets.Set(ctx, from, budget.Budget{
		ID: budget.ID{Account: a.name, Period: budget.Day, Unit: budget.Jobs}, Limit: 1e12,
	})
}

type dispatcher struct {
	*stepfn.Machine
	workers *dynamo.Workers
}

func (d dispatcher) Dispatch(ctx context.Context, j job.Job, open dynamo.OpenEntry) error {
	if err := d.Machine.Dispatch(ctx, j, open); err != nil {
		return err
	}
	_, _ = d.workers.Warm(ctx, j.Lane) // a failure only delays a wake call
	return nil
}

// randomBytes reads from a seeded random source, so that ids depend only on the seed.
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

func (w *World) newID() string {
	w.ids++
	return fmt.Sprintf("%032d", w.ids)
}
