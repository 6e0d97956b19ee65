package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/service/realtime"
)

// records are the stores that sessions need.
type records struct {
	keys interface {
		credential.Store
		credential.TokenStore
	}
	sessions session.Store
	usage    usage.Store
	files    realtime.Files
	blobs    realtime.Blobs
	close    func()
}

// openRecords opens the stores that the settings name.
func openRecords(ctx context.Context, env *setting.Environment) (*records, error) {
	if data := env.Optional("CUTROOM_DATA"); data != "" {
		return openFolder(ctx, data)
	}
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	client := dynamo.NewClient(config)
	bucket := s3blob.New(config, env.Required("CUTROOM_BUCKET"))
	return &records{
		keys:     dynamo.NewKeys(client, env.Required("CUTROOM_CREDENTIALS_TABLE")),
		sessions: dynamo.NewSessions(client, env.Required("CUTROOM_SESSIONS_TABLE")),
		usage:    dynamo.NewUsage(client, env.Required("CUTROOM_USAGE_TABLE")),
		files:    newFiles(dynamo.NewFiles(client, env.Required("CUTROOM_FILES_TABLE"))),
		blobs:    bucket,
		close:    func() {},
	}, nil
}

// openFolder opens a data folder that a server on this machine has made.
func openFolder(ctx context.Context, data string) (*records, error) {
	blobs, err := diskblob.NewView(filepath.Join(data, "blobs"))
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	clock, err := boottime.Open()
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, filepath.Join(data, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	return &records{
		keys: db.Keys(), sessions: db.Sessions(clock), usage: db.Usage(), files: newFiles(db.Files()), blobs: blobs,
		close: func() { db.Close() },
	}, nil
}

// newFiles finds files by their ids; nothing else is asked of it here.
func newFiles(store file.Store) *file.Service {
	return file.NewService(file.Config{Store: store, IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now})
}
