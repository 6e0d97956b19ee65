// Function steps processes batches: each run makes requests of one batch for some minutes, and starts other runs
// while batches are waiting. The batches function starts it for new and cancelled batches. A schedule starts it
// for all others: batches that wait until a given time, and batches whose run died. It ignores its event.
package main

import (
	"context"
	"crypto/rand"
	"time"

	"cutroom/shared/adapter/lambdainvoke"
	"cutroom/shared/app/modelapp"
	"cutroom/shared/domain/batch"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/service/batches"
	"cutroom/shared/service/gateway"
)

// mostAtOnce is the maximum number of concurrent batches. It limits the load on the model servers,
// because each process counts the slots in use separately.
const mostAtOnce = 5

func main() { lambdaevent.Main(steps) }

func steps() (func(context.Context, any) (any, error), error) {
	p, err := modelapp.New()
	if err != nil {
		return nil, err
	}
	store, bucket := p.Batches(), p.Bucket()
	sweeper := &batch.Sweeper{Store: store, Blobs: bucket, Storage: p.Storage(), Now: time.Now}
	files, self := p.Results(bucket), lambdainvoke.NewFunction(p.AWS, p.Required("CUTROOM_STEPS_FUNCTION"), time.Now)
	if err := p.Err(); err != nil {
		return nil, err
	}
	s := &batches.Steps{
		Runner: batches.New(batches.Config{
			Store: store, Sweeper: sweeper, Files: files, Blobs: bucket, Storage: sweeper.Storage,
			Keys: p.Keys, Gateway: gateway.New(p.Gateway), Now: time.Now, NewID: rand.Text,
			Intervals: batches.StepIntervals(), Logger: p.Logger,
		}),
		Claims: store, Sweeper: sweeper, Others: self, Most: mostAtOnce, NewID: rand.Text, Now: time.Now, Logger: p.Logger,
	}
	return func(ctx context.Context, _ any) (any, error) { return nil, s.Do(ctx) }, nil
}
