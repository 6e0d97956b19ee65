package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/service/realtime"
)

type stores struct {
	keys interface {
		credential.Store
		credential.TokenStore
	}
	sessions session.Store
	usage    usage.Store
	budgets  budget.Store
	files    realtime.Files
	blobs    realtime.Blobs
	close    func()
}

func openStores(ctx context.Context, env *setting.Environment, clock *boottime.Clock) (*stores, error) {
	if data := env.Optional("CUTROOM_DATA"); data != "" {
		return openFolder(ctx, data, clock)
	}
	config, err := loadAWS(ctx)
	if err != nil {
		return nil, err
	}
	client, usageTable := dynamo.NewClient(config), env.Required("CUTROOM_USAGE_TABLE")
	bucket := s3blob.New(config, env.Required("CUTROOM_BUCKET"))
	return &stores{
		keys:     dynamo.NewKeys(client, env.Required("CUTROOM_CREDENTIALS_TABLE"), env.Required("CUTROOM_USAGE_TABLE")),
		sessions: dynamo.NewSessions(client, env.Required("CUTROOM_SESSIONS_TABLE")),
		usage:    dynamo.NewUsage(client, usageTable),
		budgets:  dynamo.NewBudgets(client, usageTable, clock, rand.Text),
		files:    newFiles(dynamo.NewFiles(client, env.Required("CUTROOM_FILES_TABLE"))),
		blobs:    bucket,
		close:    func() {},
	}, nil
}

// loadAWS configures the AWS clients. On Fargate, a task's credentials come not from its environment but from the ECS
// agent, which renews them.
func loadAWS(ctx context.Context) (aws.Config, error) {
	clients, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return aws.Config{}, fmt.Errorf("configure AWS clients: %w", err)
	}
	return clients, nil
}

func openFolder(ctx context.Context, data string, clock *boottime.Clock) (*stores, error) {
	blobs, err := diskblob.NewView(filepath.Join(data, "blobs"))
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	opened, err := sqlite.Open(ctx, filepath.Join(data, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	return &stores{
		keys: opened.Keys(), sessions: opened.Sessions(clock), usage: opened.Usage(), files: newFiles(opened.Files()), blobs: blobs,
		budgets: opened.Budgets(clock), close: func() { opened.Close() },
	}, nil
}

func newFiles(store file.Store) *file.Service {
	return file.NewService(file.Config{Store: store, IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now})
}
