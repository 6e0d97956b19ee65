package main

import (
	"context"
	"errors"

	"cutroom/shared/platform/httpserver"
)

// healthCommand is the health check for containers that have no other program for it. It has the
// same address flags as dev.
type healthCommand struct {
	Addr          string `env:"CUTROOM_ADDR" default:"127.0.0.1:8080" help:"Address of the media API (${env})."`
	InferenceAddr string `env:"CUTROOM_INFERENCE_ADDR" default:"127.0.0.1:8081" help:"Address of the gateway (${env})."`
}

func (c *healthCommand) Run(ctx context.Context) error {
	return errors.Join(httpserver.AskHealth(ctx, c.Addr), httpserver.AskHealth(ctx, c.InferenceAddr))
}
