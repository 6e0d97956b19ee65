package command

import (
	"context"
	"fmt"

	"cutroom/shared/client"
)

type JobsDeliveries struct {
	ID string `arg:"" help:"Id of the job."`
}

func (c *JobsDeliveries) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		deliveries, err := service.Deliveries(ctx, c.ID)
		if err != nil {
			return err
		}
		list := s.newList("ATTEMPT", "AT", "STATUS", "NEXT ATTEMPT", "ERROR")
		for _, d := range deliveries {
			status, why := "-", ""
			if d.Status != nil {
				status = fmt.Sprint(*d.Status)
			}
			if d.Error != nil {
				why = *d.Error
			}
			if err := list.add(d.Raw, fmt.Sprint(d.Attempt), local(d.At), status, local(d.NextAttemptAt), why); err != nil {
				return err
			}
		}
		return list.end()
	})
}

type WebhookSecret struct{}

func (WebhookSecret) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		secret, err := service.WebhookSecret(ctx)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.Print(map[string]string{"secret": secret})
		}
		return s.printLine(secret)
	})
}
