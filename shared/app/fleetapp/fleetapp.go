// Package fleetapp assembles a fleet of workers. It is a separate package because the ECS client
// would add 2 MB to every function.
package fleetapp

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/ecs"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

// mostWorkers is the default task quota of an ECS service.
const mostWorkers = 5000

// The caller must validate the fleet's rules.
func New(env *setting.Environment, config aws.Config) *fleet.Fleet {
	return &fleet.Fleet{
		Rules: fleet.Rules{
			Min:     env.Number("CUTROOM_WORKER_MIN", 0, mostWorkers, 0),
			Max:     env.Number("CUTROOM_WORKER_MAX", 1, mostWorkers, 1),
			Backlog: env.Number("CUTROOM_WORKER_BACKLOG", 1, 1000, 2),
			Idle:    time.Duration(env.Number("CUTROOM_WORKER_IDLE", 5, 24*60, 10)) * time.Minute,
		},
		Lengths: sqsqueue.NewLengths(config, map[job.Lane]string{
			job.VideoLane: env.Required("CUTROOM_VIDEO_QUEUE"), job.ImageLane: env.Required("CUTROOM_IMAGE_QUEUE"),
		}),
		Store:   dynamo.NewFleetStore(dynamo.NewClient(config), env.Required("CUTROOM_JOBS_TABLE")),
		Service: ecs.NewService(config, env.Required("CUTROOM_CLUSTER"), env.Required("CUTROOM_WORKER_SERVICE")),
		Now:     time.Now,
	}
}
