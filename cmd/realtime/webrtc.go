package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"cutroom/shared/adapter/ec2"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/setting"
	"cutroom/shared/app/webrtc"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/httpserver"
)

// openWebRTC opens the transport at CUTROOM_RTC_ADDR. It returns nil if the variable is not set.
func openWebRTC(
	ctx context.Context, env *setting.Environment, tools *ffmpeg.Tools, origins httpserver.Origins, logger *slog.Logger,
) (*webrtc.Transport, error) {
	c := webrtc.Config{
		Addr: env.Optional("CUTROOM_RTC_ADDR"), Public: list(env.Optional("CUTROOM_RTC_PUBLIC")),
		Relays: list(env.Optional("CUTROOM_RTC_TURN")), RelaySecret: env.Optional("CUTROOM_RTC_TURN_SECRET"),
		Sandbox: tools.Sandbox(), Origins: origins, Now: time.Now, Logger: logger,
	}
	if metadata := env.Optional("ECS_CONTAINER_METADATA_URI_V4"); metadata != "" {
		c.Task = func(ctx context.Context) ([]netip.Addr, error) { return findTask(ctx, metadata) }
	}
	if arn := env.Optional("CUTROOM_RTC_TURN_SECRET_ARN"); arn != "" {
		secret, err := readSecret(ctx, arn)
		if err != nil {
			return nil, fmt.Errorf("CUTROOM_RTC_TURN_SECRET_ARN: %w", err)
		}
		c.RelaySecret = string(secret)
	}
	return webrtc.Open(ctx, c)
}

func list(text string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func findTask(ctx context.Context, metadata string) ([]netip.Addr, error) {
	config, err := loadAWS(ctx)
	if err != nil {
		return nil, err
	}
	task, err := ec2.NewTaskAddress(metadata, config)
	if err != nil {
		return nil, err
	}
	return task.Find(ctx)
}

func readSecret(ctx context.Context, arn string) ([]byte, error) {
	config, err := loadAWS(ctx)
	if err != nil {
		return nil, err
	}
	return secrets.NewSecret(config, arn).Value(ctx)
}
